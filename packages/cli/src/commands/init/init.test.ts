/** `tenon init` on the embedded cluster of each simulator: what it writes is valid, and launches what is missing. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { kinds, type KubeObject } from '@tenon/api'
import { createCredentials, startDevCluster } from '@tenon/devcluster'
import { createCacheRegistry, createEventRecorder, createKubeClient } from '@tenon/kube'
import { defaultSettings, InlineDecider, Operator } from '@tenon/operator'
import type { CloudProvider, ProviderDependencies, ProviderModule, SimulatedProvider } from '@tenon/provider'
import { openExoscale, readExoscaleOptions, surveyModuleOver } from '@tenon/provider-exoscale'
import { exoscaleSimulator } from '@tenon/simulator-exoscale'
import { Secret, SeededRandom, silentLogger, type Transport, VirtualClock } from '@tenon/runtime'
import { recognizedProvider } from '../../load-provider.ts'
import { allCrds } from '../../crds.ts'
import { type CommandOutcome, runCommand } from '../../testing/command.test-support.ts'
import { parseManifests } from '../../manifests.ts'
import { applyManifests } from '../../embedded/apply.ts'
import { cleverCloud, clusterApi, exoscale } from '../../providers.ts'
import { manifestsOf } from './manifests.ts'
import { planOf } from './plan.ts'
import { seeCluster } from './see-cluster.ts'

interface Stand {
  readonly module: ProviderModule
  readonly open: (dependencies: ProviderDependencies, cloud: SimulatedProvider) => Promise<CloudProvider>
  /** Settings of a module over the simulated cloud. */
  readonly over: (cloud: SimulatedProvider) => ProviderModule
  readonly hasNodeGroups?: boolean
  readonly objects: readonly KubeObject[]
  /** Whether nodes tell the provider. */
  readonly isRecognized: boolean
}

const apiPort = 6443
const apiUrl = `https://127.0.0.1:${apiPort}`
const signal = new AbortController().signal

function workload(
  name: string,
  replicas: number,
  requests: object,
  more: object = {},
  container: object = {},
): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: {
          ...more,
          containers: [
            { name: 'app', image: 'registry.k8s.io/pause', resources: { requests }, ...container },
          ],
        },
      },
    },
  } as KubeObject
}

/** Cluster Autoscaler with its flags. */
function autoscalerWith(...nodes: readonly string[]): KubeObject {
  const command = ['./cluster-autoscaler', ...nodes.map((each) => `--nodes=${each}`)]
  return workload('cluster-autoscaler', 1, {}, {}, { command })
}

/** Starts the cluster, reads it, applies what is written and waits until every pod runs. */
async function initialized(t: TestContext, stand: Stand) {
  const clock = new VirtualClock()
  const random = new SeededRandom('init')
  const logger = silentLogger
  const simulator = await stand.module.simulator?.()
  assert.ok(simulator)
  const cluster = startDevCluster({
    clock,
    random: random.fork('cluster'),
    logger,
    credentials: await createCredentials(clock.now()),
    simulator: simulator.cloud({ isHurried: true, hasNodeGroups: stand.hasNodeGroups ?? false }),
  })
  t.after(() => {
    cluster.stop()
  })
  cluster.announce('127.0.0.1', apiPort)
  const cloudUrl = `http://127.0.0.1${cluster.cloud.api?.path ?? ''}`
  cluster.cloud.api?.announce(cloudUrl)
  const env = simulator.settings({ apiUrl, cloudUrl, kubeconfig: '/nowhere' })
  const apply = (objects: Parameters<typeof applyManifests>[1]) => applyManifests(cluster, objects, clock)
  const during = async <T>(work: Promise<T>): Promise<T> => {
    let isOver = false
    const over = () => {
      isOver = true
    }
    work.then(over, over)
    await clock.advanceUntil(() => isOver, 10 * 60_000)
    return await work
  }
  await during(
    apply((await allCrds([stand.module])).map((crd) => ({ object: crd as never, source: 'crds' }))),
  )
  await during(apply(stand.objects.map((object) => ({ object: object as never, source: 'test' }))))
  await clock.advance(90_000)
  const api = cluster.server.localAs('kubectl')
  const writes: string[] = []
  const recorded: Transport = {
    send: (request, aborted) => {
      if (request.method !== 'GET') writes.push(`${request.method} ${request.path}`)
      return cluster.transport.send(request, aborted)
    },
  }
  const nodes = api.list(kinds.node)
  const module = stand.over(cluster.cloud)
  assert.equal((await recognizedProvider([module], nodes)) === module, stand.isRecognized)
  const surveyModule = await module.survey?.()
  assert.ok(surveyModule)
  const pendingBefore = api.list(kinds.pod).filter(({ spec }) => spec?.nodeName === undefined).length
  assert.ok(pendingBefore > 0, 'some pods wait')
  const seen = await during(
    seeCluster(
      {
        kube: createKubeClient({ transport: recorded, clock }),
        clock,
        env,
        module,
        surveyModule,
        nodes,
        readText: () => Promise.reject(new Error('no file is named')),
      },
      signal,
    ),
  )
  const text = manifestsOf(planOf(seen), 'https://sks.example')
  assert.deepEqual(writes, [])

  const run = async () => {
    await during(apply(parseManifests('init', text)))
    const client = createKubeClient({ transport: cluster.transport, clock })
    const events = createEventRecorder({ client, clock, logger, random, component: 'karpenter' })
    const registry = createCacheRegistry({ client, clock, logger, random })
    const dependencies: ProviderDependencies = {
      env,
      kubernetes: { client, registry, events, server: apiUrl },
      cloud: { fenced: (transport) => transport, userAgent: 'tenon/init' },
      runtime: { clock, random, logger },
    }
    const provider = await during(stand.open(dependencies, cluster.cloud))
    const operator = new Operator({
      kubernetes: { client, registry, events },
      runtime: { clock, random, logger },
      provider,
      decider: new InlineDecider(clock),
      settings: defaultSettings,
    })
    await during(operator.observe())
    operator.lead()
    const waiting = () =>
      api
        .list(kinds.pod)
        .filter(({ status }) => status?.phase !== 'Running')
        .map(({ metadata }) => metadata.name)
    await clock.advanceUntil(() => waiting().length === 0, 20 * 60_000).catch(() => undefined)
    t.after(() => operator.stop())
    return waiting()
  }
  const validate = (...flags: readonly string[]) => runCommand(['validate', '-', ...flags], { input: text })
  return { text, seen, run, validate }
}

async function assertValid(outcome: Promise<CommandOutcome>, text: string): Promise<void> {
  const { code, out, err } = await outcome
  assert.deepEqual([code, out], [0, ''], `${err}\n${text}`)
  assert.match(err, / 0 errors, 0 warnings\n$/)
}

const openSimulatedExoscale: Stand['open'] = async ({ env, kubernetes, runtime }, { api }) => {
  const options = readExoscaleOptions(env)
  assert.ok('ok' in options && api !== undefined)
  const { handle } = api
  return await openExoscale({
    kubernetes,
    runtime,
    options: options.ok,
    connect: () => ({ send: handle }),
  })
}

const onExoscale: Stand = {
  module: exoscale,
  open: openSimulatedExoscale,
  over: ({ api }) => ({
    ...exoscale,
    survey: () => Promise.resolve(surveyModuleOver(() => ({ send: api?.handle ?? assert.fail() }))),
  }),
  hasNodeGroups: true,
  isRecognized: true,
  objects: [
    workload('web', 12, { cpu: '1', memory: '1Gi' }),
    // Larger than the largest type next to those in use.
    workload('large', 1, { cpu: '14', memory: '40Gi' }),
    autoscalerWith('1:6:workers', '2:5:nobody'),
  ],
}

test('EXP-25 init on SKS: nodepool and Instance Pool become NodePools, valid, on which the pending pods run', async (t) => {
  const { text, validate, run } = await initialized(t, onExoscale)
  await assertValid(validate('--zone', 'ch-gva-2'), text)
  assert.match(text, /^# From SKS nodepool workers with 1 node\.$/m)
  assert.match(text, /^# The group keeps at least 1 node;/m)
  assert.match(text, /^# From Instance Pool batch with 1 node\.$/m)
  assert.match(text, /--nodes=2:5:nobody, but no such group was found/)
  assert.match(text, /limits:\n {4}cpu: 24\n/)
  assert.match(text, /- standard\.medium\n *- standard\.large\n *- standard\.extra-large\n/)
  assert.deepEqual(await run(), [], text)
})

/** An SKS cluster with two nodepools, one of which is kept for batch jobs. */
const twoNodepools: ProviderModule = {
  ...exoscale,
  simulator: async () => {
    const simulator = await exoscale.simulator?.()
    assert.ok(simulator)
    const zone = exoscaleSimulator({
      zone: 'ch-gva-2',
      clusterId: 'f1b5a3c2-6d0e-4c57-9a8b-2f4e6d8c0a11',
      key: 'EXOtenon0000000000000000001',
      secret: new Secret('simulated-secret-of-the-embedded-cluster'),
    })
    return {
      ...simulator,
      cloud: () => ({
        ...zone,
        start: (parts) => {
          const cloud = zone.start(parts)
          cloud.add({
            securityGroups: [{ id: '7c1f6a5e-2a1b-4f0e-9d3c-5b8e2f4a6d10', name: 'sks-nodes' }],
            nodepools: [
              {
                name: 'workers',
                type: 'standard.large',
                size: 1,
                prefix: 'workers',
                joins: true,
                securityGroupIds: ['7c1f6a5e-2a1b-4f0e-9d3c-5b8e2f4a6d10'],
              },
              {
                name: 'batch',
                type: 'cpu.extra-large',
                size: 1,
                prefix: 'batch',
                joins: true,
                diskSizeGib: 100,
                labels: { workload: 'batch' },
                taints: { workload: { value: 'batch', effect: 'NoSchedule' } },
              },
            ],
          })
          return {
            api: { path: '/v2', handle: cloud.handle, announce: (url) => cloud.setBaseUrl(url) },
            instances: () => cloud.instances(),
            stop: () => cloud.stop(),
          }
        },
      }),
    }
  },
}

test('EXP-25 init on SKS with two nodepools writes what its page shows; the pending pods of both run', async (t) => {
  const { text, validate, run } = await initialized(t, {
    ...onExoscale,
    module: twoNodepools,
    objects: [
      workload('web', 8, { cpu: '1', memory: '1Gi' }),
      workload(
        'jobs',
        3,
        { cpu: '3', memory: '2Gi' },
        { nodeSelector: { workload: 'batch' }, tolerations: [{ key: 'workload', operator: 'Exists' }] },
      ),
      autoscalerWith('1:6:workers', '0:10:batch'),
    ],
  })
  await assertValid(validate('--zone', 'ch-gva-2'), text)
  const page = readFileSync(join(import.meta.dirname, '../../../../../docs/ask/init.md'), 'utf8')
  const [, shown] = /^```yaml\n([\s\S]*?)^```/m.exec(page) ?? []
  assert.equal(text, shown)
  assert.deepEqual(await run(), [], text)
})

test('EXP-25 init on Clever Cloud: NodeGroups become NodePools, valid, on which the pending pods run', async (t) => {
  const { text, validate, run } = await initialized(t, {
    module: cleverCloud,
    open: (dependencies) => cleverCloud.open(dependencies),
    over: () => cleverCloud,
    isRecognized: true,
    objects: [
      {
        apiVersion: 'api.clever-cloud.com/v1',
        kind: 'NodeGroup',
        metadata: { name: 'workers' },
        spec: {
          flavor: 'S',
          nodeCount: 1,
          labels: { team: 'platform' },
          taints: [{ key: 'team', value: 'platform', effect: 'NoSchedule' }],
        },
      } as KubeObject,
      workload(
        'platform',
        8,
        { cpu: '1', memory: '1Gi' },
        { nodeSelector: { team: 'platform' }, tolerations: [{ key: 'team', operator: 'Exists' }] },
      ),
      workload('web', 4, { cpu: '500m', memory: '512Mi' }),
    ],
  })
  await assertValid(validate(), text)
  assert.match(text, /^# From NodeGroup workers with 1 node\.$/m)
  assert.match(text, /- XS\n *- S\n *- M\n/)
  assert.match(text, /^ *team: platform$/m)
  assert.match(text, /^# For pods that no group takes, such as the pending pod default\/web/m)
  assert.deepEqual(await run(), [], text)
})

test('EXP-25 init on Cluster API: MachineDeployments become NodePools, valid, on which the pending pods run', async (t) => {
  const { text, validate, run } = await initialized(t, {
    module: clusterApi,
    open: (dependencies) => clusterApi.open(dependencies),
    over: () => clusterApi,
    // There is no Machine yet.
    isRecognized: false,
    objects: [workload('web', 10, { cpu: '1', memory: '1Gi' })],
  })
  await assertValid(validate(), text)
  assert.match(text, /^# From MachineDeployment medium with 0 nodes\.$/m)
  assert.match(text, /- small\n *- medium\n *- large\n/)
  assert.match(text, /limits:\n {4}cpu: 96\n/)
  assert.deepEqual(await run(), [], text)
})
