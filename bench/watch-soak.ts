/**
 * Watches under churn: stock clients follow pods, config maps and custom objects over HTTPS while writers
 * change them, and every client must see every version exactly once and in order.
 *
 *   node bench/watch-soak.ts [--minutes 10] [--rate 200] [--seed N] [--kubeconfig FILE]
 *
 * Without --kubeconfig it starts its own API server with a short history, and an additional informer whose
 * connection breaks for longer than that history, so that it gets 410 and lists again. Exits with 1 if anything
 * was missed, repeated or out of order.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { KubeConfig } from '@kubernetes/client-node'
import { createApiServer, createCredentials, kubeconfigYaml } from '@tenon/devcluster'
import { SeededRandom, SystemClock, serveHttps, silentLogger } from '@tenon/runtime'
import { crd, soakKinds, Writer } from './watch-soak/churn.ts'
import { type CuttingProxy, startCuttingProxy } from './watch-soak/cutting-proxy.ts'
import { Ledger, LossyTrack, Verdict } from './watch-soak/ledger.ts'
import { createSender, type Send } from './watch-soak/requests.ts'
import {
  informerWatch,
  kubectlWatch,
  lossyInformer,
  type LossyWatcher,
  plainWatch,
  serverState,
  type Watcher,
} from './watch-soak/watchers.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    rate: { type: 'string', default: '200' },
    seed: { type: 'string', default: '1' },
    kubeconfig: { type: 'string' },
  },
})
const durationMs = Number(values.minutes) * 60_000
const rate = Number(values.rate)
const seed = Number(values.seed)
if (![durationMs, rate, seed].every((number) => Number.isFinite(number) && number > 0)) {
  console.error('watch-soak: --minutes, --rate and --seed take positive numbers')
  process.exit(1)
}

const host = '127.0.0.1'
const writersPerKind = 2
const progressMs = 10_000
/** An event may be this late before it counts as missed. */
const lagMs = 8000
/** Seconds of churn that this soak's server remembers, per kind. */
const historySeconds = 10
/** The connection works for part of this time, and is then cut for longer than the history lasts. */
const wholeMs = Math.min(15_000, durationMs / 4)

/** An API server on a socket, with a short history. */
async function startServer(kubeconfig: string) {
  const clock = new SystemClock()
  const credentials = await createCredentials(clock.now())
  const { adminToken, signingKey, server, certificateAuthority } = credentials
  const maxChanges = Math.min(
    Math.ceil((rate / soakKinds.length) * historySeconds),
    Math.ceil((rate / soakKinds.length) * (durationMs / 8000)),
  )
  const api = createApiServer({
    clock,
    random: new SeededRandom(seed),
    logger: silentLogger,
    adminToken,
    signingKey,
    retention: { maxChanges, maxAgeMs: 60_000 },
  })
  const https = await serveHttps(api.handle, {
    host,
    port: 0,
    certificate: server.certificate,
    privateKey: server.privateKey,
    certificateAuthority: certificateAuthority.certificate,
  })
  await writeFile(kubeconfig, kubeconfigYaml({ server: https.url, credentials }), { mode: 0o600 })
  return {
    port: https.port,
    maxChanges,
    close: async () => {
      api.stop()
      await https.close()
    },
  }
}

/** The same cluster through a connection that can be cut. */
function throughProxy(config: KubeConfig, proxy: CuttingProxy): KubeConfig {
  const other = new KubeConfig()
  other.loadFromString(config.exportConfig())
  const [cluster] = other.clusters
  if (cluster === undefined) throw new Error('the kubeconfig names no cluster')
  other.clusters = [{ ...cluster, server: `https://${host}:${proxy.port}` }]
  return other
}

/**
 * @param isForgotten whether the server has forgotten the changes before a cut, at which this number had been written.
 * @returns the number of cuts that outlasted the history: a slow host may write too little for that.
 */
async function cutNowAndThen(
  proxy: CuttingProxy,
  bounds: { readonly endMs: number; readonly cutMs: number },
  writes: () => number,
  isForgotten: (writesBefore: number) => boolean,
): Promise<number> {
  const { endMs, cutMs } = bounds
  let cuts = 0
  while (performance.now() + wholeMs + cutMs < endMs) {
    await sleep(wholeMs)
    const before = writes()
    proxy.cut()
    await sleep(cutMs)
    if (isForgotten(before)) cuts++
    proxy.restore()
  }
  return cuts
}

/** A watch from resource version 1 must be rejected once it is compacted. */
async function answersGone(send: Send): Promise<boolean> {
  const { status, body } = await send(
    'GET',
    `${soakKinds[1]?.collection}?watch=1&resourceVersion=1&timeoutSeconds=1`,
  )
  return status === 410 || (body as { object?: { code?: number } }).object?.code === 410
}

async function waitUntil(isReached: () => boolean | Promise<boolean>, limitMs: number): Promise<void> {
  const endMs = performance.now() + limitMs
  while (!(await isReached()) && performance.now() < endMs) await sleep(100)
}

const directory = await mkdtemp(join(tmpdir(), 'watch-soak-'))
const kubeconfig = values.kubeconfig ?? join(directory, 'kubeconfig')
const own = values.kubeconfig === undefined ? await startServer(kubeconfig) : undefined
const config = new KubeConfig()
config.loadFromFile(kubeconfig)
const { send, close } = await createSender(config)
const crdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
await send('POST', crdPath, crd)
const widgets = soakKinds[2]?.collection ?? ''
await waitUntil(async () => (await send('GET', widgets)).status === 200, 5000)

const verdict = new Verdict()
const random = new SeededRandom(seed)
const watchers: Watcher[] = []
const kinds = soakKinds.map((kind) => ({
  kind,
  ledger: new Ledger(verdict),
  tracks: new Array<{ name: string; events: number }>(),
}))
for (const { kind, ledger, tracks } of kinds) {
  const [kubectl, informer, plain] = ['kubectl', 'informer', 'watch'].map((name) =>
    ledger.track(`${name} ${kind.name}`),
  )
  if (kubectl === undefined || informer === undefined || plain === undefined) throw new Error('unreachable')
  tracks.push(kubectl, informer, plain)
  watchers.push(kubectlWatch(kubeconfig, kind, kubectl, verdict))
  watchers.push(await informerWatch(config, send, kind, informer, verdict))
  watchers.push(await plainWatch(config, send, kind, plain, verdict))
}
const proxy = own && (await startCuttingProxy(host, own.port))
const lossy: { kind: (typeof soakKinds)[number]; track: LossyTrack; watcher: LossyWatcher }[] = []
for (const kind of proxy === undefined ? [] : soakKinds) {
  const track = new LossyTrack(`broken-line informer ${kind.name}`, verdict)
  const lines = throughProxy(config, proxy as CuttingProxy)
  lossy.push({ kind, track, watcher: await lossyInformer(lines, send, kind, track) })
}
// kubectl needs a moment until its watch is open.
await sleep(1500)

const startMs = performance.now()
const endMs = startMs + durationMs
const writers = kinds.flatMap(({ kind, ledger }) =>
  Array.from({ length: writersPerKind }, (_, index) => {
    const writesPerSecond = rate / (soakKinds.length * writersPerKind)
    const id = `${kind.name.slice(0, 2)}${index}`
    return new Writer({ kind, ledger, verdict, send, random: random.fork(id), id, writesPerSecond, endMs })
  }),
)
const writes = () => writers.reduce((sum, writer) => sum + writer.writes, 0)
/** Each kind has its own history, and gets its share of the writes. */
const isForgotten = (before: number) =>
  (writes() - before) / soakKinds.length > 1.2 * (own?.maxChanges ?? Number.POSITIVE_INFINITY)
const totals = () => {
  const events = kinds.flatMap(({ tracks }) => tracks).reduce((sum, track) => sum + track.events, 0)
  const checked = kinds.reduce((sum, { ledger }) => sum + ledger.checkedObjects, 0)
  const relists = lossy.reduce((sum, { track }) => sum + track.lists - 1, 0)
  return `${writes()} writes, ${events} events, ${checked} objects checked, ${relists} relists, ${verdict.count} violations`
}
const progress = setInterval(() => {
  for (const { ledger } of kinds) ledger.check(performance.now() - lagMs)
  const seconds = Math.round((performance.now() - startMs) / 1000)
  console.log(`${String(seconds).padStart(4)} s  ${totals()}`)
}, progressMs)

const cutMs = Math.min((historySeconds + 5) * 1000, durationMs / 4)
const [cuts] = await Promise.all([
  proxy === undefined ? 0 : cutNowAndThen(proxy, { endMs, cutMs }, writes, isForgotten),
  ...writers.map((writer) => writer.run()),
])
clearInterval(progress)
const churnSeconds = (performance.now() - startMs) / 1000

if (own !== undefined && !(await answersGone(send)))
  verdict.add('a watch from a compacted version was not refused')
await waitUntil(() => kinds.every(({ ledger }) => ledger.isCaughtUp()), lagMs)
for (const { ledger } of kinds) ledger.check(0, true)
for (const { kind, track, watcher } of lossy) {
  let expected = ''
  await waitUntil(async () => {
    expected = (await serverState(send, kind)).join('\n')
    return watcher.state().join('\n') === expected
  }, lagMs * 2)
  if (watcher.state().join('\n') !== expected)
    verdict.add(`${track.name}: holds another state than the server`)
}
const relists = lossy.reduce((sum, { track }) => sum + track.lists - 1, 0)
if (cuts > 0 && relists === 0) verdict.add('no informer was made to list again')

for (const watcher of [...watchers, ...lossy.map((each) => each.watcher)]) await watcher.stop()
await proxy?.close()
for (const kind of soakKinds) {
  for (const entry of await serverState(send, kind))
    await send('DELETE', `${kind.collection}/${entry.split(' ')[0]}`, { gracePeriodSeconds: 0 })
}
await send('DELETE', `${crdPath}/${crd.metadata.name}`)
close()
await own?.close()
await rm(directory, { recursive: true })

for (const { tracks } of kinds)
  for (const { name, events } of tracks) console.log(`${name.padEnd(32)} ${events} events`)
for (const { track } of lossy)
  console.log(`${track.name.padEnd(32)} ${track.events} events, ${track.lists} lists`)
const written = writers.reduce((sum, writer) => sum + writer.writes, 0)
const conflicts = writers.reduce((sum, writer) => sum + writer.conflicts, 0)
const history = own === undefined ? '' : `, history of ${own.maxChanges} changes per kind`
console.log(
  `seed ${seed}, ${churnSeconds.toFixed(0)} s, ${Math.round(written / churnSeconds)} writes/s, ${conflicts} refused as stale, ${cuts} cuts${history}`,
)
console.log(totals())
for (const message of verdict.messages) console.error(`violation: ${message.trim()}`)
process.exit(verdict.count === 0 ? 0 : 1)
