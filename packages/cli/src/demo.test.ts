/** `tenon up --demo`: the story on virtual time, and as a process. `TENON_DEMO=full` plays the process to its end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { createCredentials, startDevCluster } from '@tenon/devcluster'
import type { CloudProvider, ProviderDependencies, ProviderModule, SimulatedProvider } from '@tenon/provider'
import { createCacheRegistry, createEventRecorder, createKubeClient } from '@tenon/kube'
import { defaultSettings, InlineDecider, Operator } from '@tenon/operator'
import { openExoscale, readExoscaleOptions } from '@tenon/provider-exoscale'
import { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { allCrds } from './crds.ts'
import type { Io } from './io.ts'
import { parseManifests } from './manifests.ts'
import { cleverCloud, clusterApi, exoscale } from './providers.ts'
import {
  eventually,
  interrupted,
  runTenon,
  startTenon,
  temporaryDirectory,
} from './testing/tenon-process.test-support.ts'
import { applyManifests } from './embedded/apply.ts'
import { demoPace, playDemo } from './commands/up/demo/demo.ts'
import { Narrator } from './commands/up/demo/narrator.ts'

const apiPort = 6443

function anIo(write: (text: string) => void, isTerminal: boolean, env: Io['env'] = {}): Io {
  return {
    env,
    cwd: '.',
    out: write,
    err: write,
    input: () => Promise.resolve(''),
    isTerminal,
    size: () => ({ columns: 100, rows: 40 }),
    interrupted: new AbortController().signal,
  }
}

type Open = (dependencies: ProviderDependencies, cloud: SimulatedProvider) => Promise<CloudProvider>

/** Its own `open` would reach the cloud through a socket. */
const openSimulatedExoscale: Open = async ({ env, kubernetes, runtime }, { api }) => {
  const options = readExoscaleOptions(env)
  assert.ok('ok' in options && api !== undefined)
  return await openExoscale({
    kubernetes,
    runtime,
    options: options.ok,
    connect: () => ({ send: api.handle }),
  })
}

/** Plays the whole demonstration on virtual time; answers what it said and how long it took. */
async function played(
  module: ProviderModule,
  open: Open,
): Promise<{ readonly text: string; readonly ms: number }> {
  const clock = new VirtualClock()
  const random = new SeededRandom('demo')
  const logger = silentLogger
  const credentials = await createCredentials(clock.now())
  const simulator = await module.simulator?.()
  const tour = simulator?.tour
  assert.ok(simulator !== undefined && tour !== undefined)
  const cluster = startDevCluster({
    clock,
    random: random.fork('cluster'),
    logger,
    credentials,
    simulator: simulator.cloud({ isHurried: true }),
  })
  cluster.announce('127.0.0.1', apiPort)
  const cloudUrl = `http://127.0.0.1${cluster.cloud.api?.path ?? ''}`
  cluster.cloud.api?.announce(cloudUrl)
  const apiUrl = `https://127.0.0.1:${apiPort}`
  let text = ''
  const io = anIo((part) => (text += part), false)
  const apply = (objects: Parameters<typeof applyManifests>[1]) => applyManifests(cluster, objects, clock)
  const start = async (): Promise<Operator> => {
    await apply((await allCrds()).map((crd) => ({ object: crd as never, source: 'tenon crds' })))
    const client = createKubeClient({ transport: cluster.transport, clock, userAgent: 'karpenter/demo' })
    const events = createEventRecorder({ client, clock, logger, random, component: 'karpenter' })
    const registry = createCacheRegistry({ client, clock, logger, random })
    const provider = await open(
      {
        env: simulator.settings({ apiUrl, cloudUrl, kubeconfig: '/nowhere' }),
        kubernetes: { client, registry, events, server: apiUrl },
        cloud: { fenced: (transport) => transport, userAgent: 'tenon/demo' },
        runtime: { clock, random, logger },
      },
      cluster.cloud,
    )
    const settings = { ...defaultSettings, ...demoPace }
    const decider = new InlineDecider(clock)
    const operator = new Operator({
      kubernetes: { client, registry, events },
      runtime: { clock, random, logger },
      provider,
      decider,
      settings,
    })
    await operator.observe()
    operator.lead()
    return operator
  }
  const playing = start().then(async (operator) => {
    const from = clock.monotonic()
    await playDemo({
      cluster,
      tour,
      nodeClasses: module.nodeClasses,
      apply: (yaml) => apply(parseManifests('demonstration', yaml)),
      clock,
      narrator: new Narrator(io),
      pauseMs: 2000,
      again: 'npm start',
      signal: io.interrupted,
    })
    return { operator, ms: clock.monotonic() - from }
  })
  let isOver = false
  const over = () => {
    isOver = true
  }
  playing.then(over, over)
  await clock.advanceUntil(() => isOver, 10 * 60_000)
  const { operator, ms } = await playing
  await Promise.race([operator.stop(), clock.advance(5000)])
  cluster.stop()
  return { text, ms }
}

test('the demonstration tells of seven steps, which node came for what at which price, and ends in about two minutes', async (t) => {
  const { text, ms } = await played(exoscale, openSimulatedExoscale)
  t.diagnostic(`${ms / 1000} s`)
  assert.ok(ms < 140_000, `${ms} ms`)
  assert.equal(stripVTControlCharacters(text), text, 'no control characters in a pipe')
  assert.deepEqual(
    [...text.matchAll(/^(\d)\/7 {2}/gm)].map(([, chapter]) => chapter),
    ['1', '2', '3', '4', '5', '6', '7'],
  )
  assert.match(text, /coredns-\S+ +Pending/)
  assert.match(text, /node class standard is ready/)
  const first = text.slice(text.indexOf('3/7'), text.indexOf('4/7'))
  assert.equal(first.match(/instance for NodeClaim \S+: standard\.medium, 0\.0467 EUR\/h/g)?.length, 2)
  assert.match(first, /the cheapest type that holds them; dearer: standard\.large 0\.0933/)
  assert.match(first, /coredns runs on (\S+) and (?!\1)\S+\n/)
  const many = text.slice(text.indexOf('4/7'), text.indexOf('5/7'))
  assert.match(many, /for 3 x shop: 3 CPU and 3\.0 GiB/)
  const gpu = text.slice(text.indexOf('5/7'), text.indexOf('6/7'))
  assert.match(gpu, /gpua30\.small, 1\.1681 EUR\/h\n +for training: 1 GPU\n +the cheapest type/)
  assert.match(gpu, /\(gpua30\.small, 1\.1681 EUR\/h\) is removed: no pod needs it any more \(Empty\)/)
  assert.match(text, /\d instances became 3, 0\.\d+ EUR\/h became 0\.1400 EUR\/h/)
  assert.match(text, /\d instances were launched and \d removed; 2 are left, for the system pods/)
})

test('in a cloud without GPUs the demonstration tells of a team instead, with the prices of that cloud', async (t) => {
  const { text, ms } = await played(cleverCloud, (dependencies) => cleverCloud.open(dependencies))
  t.diagnostic(`${ms / 1000} s`)
  assert.ok(ms < 140_000, `${ms} ms`)
  assert.equal([...text.matchAll(/^(\d)\/7 {2}/gm)].length, 7)
  assert.doesNotMatch(text, /GPU|EUR/)
  const first = text.slice(text.indexOf('3/7'), text.indexOf('4/7'))
  assert.equal(first.match(/instance for NodeClaim \S+: 2XS, 1\.0000 2XS-equivalents\/h/g)?.length, 2)
  const team = text.slice(text.indexOf('5/7'), text.indexOf('6/7'))
  assert.match(team, /for report: 1 CPU and 1\.0 GiB/)
  assert.match(team, /\* team-\S+ \(2XS, .*\) is removed: no pod needs it any more \(Empty\)/)
  assert.match(text, /\d instances became 2, \d\.\d+ 2XS-equivalents\/h became 2\.0000 2XS-equivalents\/h/)
  assert.match(text, /\d instances were launched and \d removed; 2 are left, for the system pods/)
})

test('at Cluster API the demonstration is played on MachineDeployments that are there', async (t) => {
  const { text, ms } = await played(clusterApi, (dependencies) => clusterApi.open(dependencies))
  t.diagnostic(`${ms / 1000} s`)
  assert.ok(ms < 140_000, `${ms} ms`)
  assert.equal([...text.matchAll(/^(\d)\/7 {2}/gm)].length, 7)
  const first = text.slice(text.indexOf('3/7'), text.indexOf('4/7'))
  assert.equal(first.match(/instance for NodeClaim \S+: small, 0\.0500 EUR\/h/g)?.length, 2)
  assert.match(text, /\d instances became 2, \d\.\d+ EUR\/h became 0\.1000 EUR\/h/)
  assert.match(text, /\d instances were launched and \d removed; 2 are left, for the system pods/)
})

/** What is written when something is waited for and then comes. */
function narrated(isTerminal: boolean, env: Io['env'] = {}): string {
  let text = ''
  const narrator = new Narrator(anIo((part) => (text += part), isTerminal, env))
  narrator.title('1/7  An empty cluster')
  narrator.status('pods wait')
  narrator.done('a node is ready')
  narrator.because('it was asked for')
  narrator.status('nothing')
  narrator.clear()
  return text
}

test('on a terminal the demonstration has colours and a line that says what is waited for', () => {
  const clear = '\r\u001b[K'
  const plain = '\n1/7  An empty cluster\n  * a node is ready\n      it was asked for\n'
  assert.equal(narrated(false), plain)
  const bare = narrated(true, { NO_COLOR: '1' })
  assert.equal(
    bare,
    `\n1/7  An empty cluster\n${clear}  … pods wait${clear}  * a node is ready\n      it was asked for\n${clear}  … nothing${clear}`,
  )
  assert.ok(narrated(true).includes('\u001b[1m1/7  An empty cluster\u001b[0m'))
  assert.equal(stripVTControlCharacters(narrated(true)), stripVTControlCharacters(bare))
})

test('Ctrl-C ends the demonstration at once with exit code 130 and nothing on stderr', async (t) => {
  const cwd = await temporaryDirectory(t)
  const demo = startTenon(t, cwd, ['up', '--demo', '--port', '0', '--api-port', '0', '--pause', '0s'])
  await eventually(
    () => /^3\/7 /m.test(demo.out()) || undefined,
    () => `the third step: ${demo.out()}${demo.err()}`,
  )
  const { ended, tookMs } = await interrupted(demo)
  assert.deepEqual(ended, { code: 130, signal: null })
  assert.ok(tookMs < 2000, `it took ${tookMs} ms`)
  assert.equal(demo.err(), '')
})

test('the demonstration takes no manifests and no directory of its own', async (t) => {
  const cwd = await temporaryDirectory(t)
  const { code, out, err } = await runTenon(t, cwd, ['up', '--demo', '--data-dir', 'data'])
  assert.deepEqual({ code, out }, { code: 1, out: '' })
  assert.match(err, /^error: --demo uses its own manifests .*remove --filename and --data-dir\n$/)
})

const isFull = process.env['TENON_DEMO'] === 'full'
test('the demonstration ends by itself with exit code 0', {
  skip: isFull ? false : 'TENON_DEMO=full plays it',
}, async (t) => {
  const cwd = await temporaryDirectory(t)
  const { code, out, err } = await runTenon(t, cwd, ['up', '--demo', '--port', '0', '--api-port', '0'])
  assert.deepEqual({ code, err }, { code: 0, err: '' })
  assert.match(out, /2 are left, for the system pods/)
})
