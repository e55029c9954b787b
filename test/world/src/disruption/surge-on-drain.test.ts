/** Rollouts that replace pods before their node is drained (wanted.md 3), on an embedded cluster with all controllers. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { karpenterKinds, type KubeObject, kinds, type NodePool, type Pod } from '@tenon/api'
import type { Settings } from '@tenon/operator'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import type { Transport } from '@tenon/runtime'
import {
  aDeployment,
  aKwokPool,
  deploymentKind,
  type RunningOperator,
  World,
  type WorldOptions,
} from '../world.ts'

const seconds = 1000
const minutes = 60 * seconds
const restartedAt = 'kubectl.kubernetes.io/restartedAt'
const surge = { 'tenon.sh/surge-on-drain': 'true' }
const labels = { app: 'web' }
const plain = { cpu: '500m', memory: '1Gi' }

interface Workload {
  readonly replicas?: number
  readonly annotations?: Readonly<Record<string, string>>
  /** Merged into the Deployment's spec. */
  readonly spec?: object
  /** Of the pods; large ones leave no room for a second one on their node. */
  readonly requests?: Readonly<Record<string, string>>
  /** Requests of a second Deployment of one pod. */
  readonly beside?: Readonly<Record<string, string>>
}

const isReady = ({ metadata, status }: Pod) =>
  metadata.deletionTimestamp === undefined &&
  (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True')

/** A cluster with one Deployment, a PDB that never allows an eviction, and Tenon at work. */
class Story {
  readonly world: World
  operator!: RunningOperator
  restarts = new Set<string>()
  leastReady = Number.POSITIVE_INFINITY

  private constructor(world: World) {
    this.world = world
  }

  static async open(
    t: TestContext,
    { replicas = 1, annotations = surge, spec = {}, requests = plain, beside }: Workload = {},
    options: Partial<WorldOptions> & { readonly pool?: Partial<NodePool['spec']> } = {},
  ): Promise<Story> {
    const { pool, ...more } = options
    const settings: Partial<Settings> = { surgeOnDrain: 'annotated' }
    const world = await World.start({ seed: 1, provider: 'kwok', settings, ...more })
    t.after(() => world.stop())
    world.create(kwokNodeClassKind, {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: 'default' },
    })
    world.create(karpenterKinds.nodePool, aKwokPool('default', pool))
    if (beside !== undefined) world.create(deploymentKind, aDeployment('beside', 1, beside))
    const deployment = aDeployment('web', replicas, requests)
    const { metadata } = deployment
    world.create<KubeObject>(deploymentKind, {
      ...deployment,
      metadata: { ...metadata, annotations },
      spec: { ...deployment.spec, ...spec },
    } as KubeObject)
    world.create(kinds.podDisruptionBudget, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace: 'default' },
      spec: { minAvailable: replicas, selector: { matchLabels: labels } },
    })
    const story = new Story(world)
    story.operator = await world.startOperator()
    await world.clock.advanceUntil(() => story.ready().length === replicas, 5 * minutes)
    assert.equal(story.ready().length, replicas)
    await world.clock.advance(90 * seconds)
    return story
  }

  /** Active pods of the Deployment that are ready. */
  ready(): readonly Pod[] {
    return this.pods().filter(isReady)
  }

  pods(): readonly Pod[] {
    return this.world.pods().filter(({ metadata }) => metadata.labels?.['app'] === 'web')
  }

  nodeNames(): readonly string[] {
    return [...new Set(this.pods().flatMap(({ spec }) => spec.nodeName ?? []))].toSorted()
  }

  /** Lets time pass until something is the case, and observes every moment of it. */
  async until(isDone: () => boolean, limitMs: number): Promise<boolean> {
    const look = () => {
      this.leastReady = Math.min(this.leastReady, this.ready().length)
      const at = this.deployment().spec.template.metadata.annotations?.[restartedAt]
      if (at !== undefined) this.restarts.add(at)
      return isDone()
    }
    await this.world.clock.advanceUntil(look, limitMs)
    return isDone()
  }

  deployment() {
    const found = this.world.cluster.server.local.get<KubeObject>(deploymentKind, 'default', 'web')
    return found as KubeObject & {
      readonly spec: {
        readonly template: { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } }
      }
    }
  }

  change(spec: object): void {
    this.world.cluster.server.local.patch(deploymentKind, 'default', 'web', { spec })
  }

  deleteNode(name: string | undefined): void {
    this.world.cluster.server.local.delete(kinds.node, undefined, name ?? '')
  }

  isGone(names: readonly string[]): boolean {
    const left = new Set(this.world.nodes().map(({ metadata }) => metadata.name))
    return names.every((name) => !left.has(name))
  }

  events(reason: string): readonly string[] {
    const all: readonly (KubeObject & { readonly reason?: string; readonly message?: string })[] =
      this.world.cluster.server.local.list(kinds.event)
    return all.filter((event) => event.reason === reason).map(({ message = '' }) => message)
  }
}

test('WNT-19 a one-replica Deployment has a ready pod at every moment while its node is replaced for drift', async (t) => {
  const story = await Story.open(t)
  const before = story.nodeNames()
  const labelled = { spec: { template: { metadata: { labels: { drifted: 'yes' } } } } }
  story.world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'default', labelled)
  assert.ok(await story.until(() => story.isGone(before), 10 * minutes))
  await story.until(() => false, 2 * minutes)
  assert.equal(story.leastReady, 1)
  assert.equal(story.restarts.size, 1)
  assert.equal(story.events('SurgeStarted').length, 1)
  assert.equal(story.world.nodes().length, 1, 'no node was launched for a pod that a rollout replaces')
})

test('WNT-19 … while it expires', async (t) => {
  const template = aKwokPool().spec.template
  const pool = { template: { ...template, spec: { ...template.spec, expireAfter: '10m' } } }
  const story = await Story.open(t, {}, { pool })
  const before = story.nodeNames()
  assert.ok(await story.until(() => story.isGone(before), 20 * minutes))
  assert.equal(story.leastReady, 1)
  assert.equal(story.restarts.size, 1)
})

test('WNT-19 … while it is consolidated', async (t) => {
  const story = await Story.open(t, { beside: { cpu: '6', memory: '12Gi' } })
  const before = story.nodeNames()
  assert.equal(story.world.nodes().length, 1)
  story.world.scale('beside', 0)
  assert.ok(await story.until(() => story.isGone(before), 15 * minutes))
  assert.equal(story.leastReady, 1)
  assert.equal(story.restarts.size, 1)
})

test('WNT-20 a drain waits for the progress deadline of a surge that never gets ready, and evicts then', async (t) => {
  const story = await Story.open(t, { spec: { progressDeadlineSeconds: 300 } })
  const [node] = story.nodeNames()
  story.world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'default', {
    spec: { limits: { cpu: '0' } },
  })
  story.deleteNode(node)
  await story.until(() => story.restarts.size === 1, 30 * seconds)
  const refused = () => story.events('SurgeFailed')
  await story.until(() => false, 4 * minutes)
  assert.deepEqual(refused(), [])
  assert.ok(await story.until(() => refused().length > 0, 4 * minutes))
  story.world.cluster.server.local.delete(kinds.podDisruptionBudget, 'default', 'web')
  assert.ok(await story.until(() => story.isGone([node ?? '']), 5 * minutes))
  assert.equal(story.restarts.size, 1)
})

test('WNT-21 two nodes that are drained at once restart a Deployment once', async (t) => {
  const requests = { cpu: '3', memory: '6Gi' }
  const antiAffinity = {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: { matchLabels: labels }, topologyKey: 'kubernetes.io/hostname' },
      ],
    },
  }
  const container = { name: 'app', image: 'registry.k8s.io/pause', resources: { requests } }
  const template = { metadata: { labels }, spec: { affinity: antiAffinity, containers: [container] } }
  const story = await Story.open(t, { replicas: 2, spec: { template } })
  const nodes = story.nodeNames()
  assert.equal(nodes.length, 2)
  for (const name of nodes) story.deleteNode(name)
  assert.ok(await story.until(() => story.isGone(nodes), 10 * minutes))
  assert.equal(story.restarts.size, 1)
  assert.ok(story.leastReady >= 2)
})

for (const [what, workload, why] of [
  [
    'maxSurge 0',
    { spec: { strategy: { rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } } },
    /has maxSurge 0/,
  ],
  ['that is paused', { spec: { paused: true } }, /is paused; resume it/],
  ['of strategy Recreate', { spec: { strategy: { type: 'Recreate' } } }, /strategy Recreate/],
  [
    'whose rollouts may lack more than its PDB allows',
    { spec: { strategy: { rollingUpdate: { maxSurge: 1, maxUnavailable: 1 } } } },
    /may lack 1 pod during a rollout \(maxUnavailable 1\), more than PodDisruptionBudget default\/web allows/,
  ],
] as const)
  test(`WNT-22 a Deployment ${what} is not restarted, and told why`, async (t) => {
    const story = await Story.open(t, what === 'that is paused' ? {} : workload)
    if (what === 'that is paused') story.change({ paused: true })
    story.deleteNode(story.nodeNames()[0])
    await story.until(() => false, 2 * minutes)
    assert.equal(story.restarts.size, 0)
    const [text, ...others] = story.events('SurgeSkipped')
    assert.match(text ?? '', why)
    assert.equal(others.length, 0)
    assert.equal(story.leastReady, 1, 'the PDB holds the pod as ever')
  })

test('WNT-23 the controller killed right after the restart does not restart again', async (t) => {
  const story = await Story.open(t)
  const before = story.nodeNames()
  const { world } = story
  story.deleteNode(before[0])
  assert.ok(await story.until(() => story.restarts.size === 1, minutes))
  const [first] = story.restarts
  assert.ok(first !== undefined)
  for (let i = 0; i < 3; i++) {
    await world.bury(story.operator)
    story.operator = await world.startOperator()
    await story.until(() => false, 3 * seconds)
  }
  assert.ok(await story.until(() => story.isGone(before), 10 * minutes))
  assert.equal(story.restarts.size, 1)
  assert.equal(story.leastReady, 1)
})

test('WNT-22 the pods of a StatefulSet are evicted, and it is told why', async (t) => {
  const story = await Story.open(t, { annotations: {} })
  const { metadata, spec } = aDeployment('db', 1)
  const type = { group: 'apps', version: 'v1', kind: 'StatefulSet', plural: 'statefulsets', namespaced: true }
  story.world.create<KubeObject>(type, {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { ...metadata, annotations: surge },
    spec: { ...spec, serviceName: 'db' },
  } as KubeObject)
  const db = () => story.world.pods().find(({ metadata: { name } }) => name === 'db-0')
  await story.until(() => db() !== undefined && isReady(db() as Pod), 5 * minutes)
  const first = db()
  story.deleteNode(first?.spec.nodeName)
  assert.ok(await story.until(() => db()?.metadata.uid !== first?.metadata.uid, 2 * minutes))
  assert.match(
    story.events('SurgeSkipped').join('\n'),
    /only Deployments can run more pods than they have replicas$/,
  )
})

test('--surge-on-drain surges for all Deployments but those that refuse, and without it for none', async (t) => {
  for (const [surgeOnDrain, annotations, restarts] of [
    ['all', {}, 1],
    ['all', { 'tenon.sh/surge-on-drain': 'false' }, 0],
    ['annotated', {}, 0],
    ['annotated', { 'tenon.sh/surge-on-drain': '__proto__' }, 0],
    ['off', surge, 0],
  ] as const) {
    const story = await Story.open(t, { annotations }, { settings: { surgeOnDrain } })
    story.deleteNode(story.nodeNames()[0])
    await story.until(() => false, minutes)
    assert.equal(story.restarts.size, restarts, `${surgeOnDrain} ${JSON.stringify(annotations)}`)
  }
})

test('WNT-42 hostile values of the annotation count as absent, and an event names each', async (t) => {
  const story = await Story.open(t)
  const { local } = story.world.cluster.server
  const values = ['', 'x'.repeat(10_000), '__proto__', 'NaN', '-1', '1e309']
  for (const value of values) {
    const annotations = { 'tenon.sh/surge-on-drain': value }
    local.patch(deploymentKind, 'default', 'web', { metadata: { annotations } })
    await story.until(() => false, 2 * seconds)
  }
  story.deleteNode(story.nodeNames()[0])
  await story.until(() => false, minutes)
  assert.equal(story.restarts.size, 0)
  const told = story.events('AnnotationIgnored')
  assert.equal(told.length, values.length)
  for (const text of told)
    assert.match(text, /surge-on-drain"\]: ".{0,60}" cannot be read and is ignored; use "true"/)
})

test('WNT-19 a restart whose answer is another one is asked for again, and no pod is evicted before', async (t) => {
  let wrong = 0
  const another = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const isRestart = request.method === 'PATCH' && request.path.includes('/deployments/')
      if (!isRestart || wrong++ > 1) return await inner.send(request, signal)
      const list = { kind: 'List', apiVersion: 'v1', metadata: {}, items: [] }
      return { status: 200, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(list))]) }
    },
  })
  const story = await Story.open(t, {}, { apiPath: another })
  const before = story.nodeNames()
  story.world.cluster.server.local.delete(kinds.podDisruptionBudget, 'default', 'web')
  story.deleteNode(before[0])
  assert.ok(await story.until(() => story.isGone(before), 5 * minutes))
  assert.deepEqual([story.restarts.size, story.leastReady, story.events('SurgeFailed')], [1, 1, []])
})

test('a restart that the API server refuses is told, and the pods are evicted as usual', async (t) => {
  const refuse = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const isRestart = request.method === 'PATCH' && request.path.includes('/deployments/')
      if (!isRestart) return await inner.send(request, signal)
      const status = {
        kind: 'Status',
        apiVersion: 'v1',
        status: 'Failure',
        reason: 'Forbidden',
        code: 403,
        message: 'no',
      }
      return { status: 403, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(status))]) }
    },
  })
  const story = await Story.open(t, {}, { apiPath: refuse })
  const before = story.nodeNames()
  story.world.cluster.server.local.delete(kinds.podDisruptionBudget, 'default', 'web')
  story.deleteNode(before[0])
  assert.ok(await story.until(() => story.isGone(before), 5 * minutes))
  assert.equal(story.restarts.size, 0)
  assert.match(story.events('SurgeFailed').join('\n'), /could not be restarted: no/)
})

test('a restart that the API server refuses is not asked for in a loop, and PDBs hold the next node', async (t) => {
  let asked = 0
  const refuse = (inner: Transport): Transport => ({
    send: async (request, signal) => {
      const isRestart = request.method === 'PATCH' && request.path.includes('/deployments/')
      if (!isRestart) return await inner.send(request, signal)
      asked++
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 403, message: 'no' }
      return { status: 403, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(status))]) }
    },
  })
  const story = await Story.open(t, {}, { apiPath: refuse })
  const before = story.nodeNames()
  story.deleteNode(before[0])
  await story.until(() => false, 2 * minutes)
  assert.equal(asked, 1)
  assert.equal(story.leastReady, 1, 'the PDB holds the pod')
})

test('a pod outside its disruption windows is not replaced by a rollout, on the node or elsewhere', async (t) => {
  for (const onNode of [true, false]) {
    const story = await Story.open(t, { replicas: 2, requests: { cpu: '3', memory: '6Gi' } })
    const { local } = story.world.cluster.server
    const [here, elsewhere] = story.pods()
    const day = ['Sun', 'Mon', 'Tue', 'Wed', 'Thu', 'Fri', 'Sat'][
      (new Date(story.world.clock.now()).getUTCDay() + 3) % 7
    ]
    local.patch(kinds.pod, 'default', (onNode ? here : elsewhere)?.metadata.name ?? '', {
      metadata: { annotations: { 'tenon.sh/disruption-windows': `${day} 00:00-06:00` } },
    })
    await story.until(() => false, 2 * seconds)
    story.deleteNode(here?.spec.nodeName)
    await story.until(() => false, minutes)
    assert.equal(story.restarts.size, 0)
    if (!onNode)
      assert.match(story.events('SurgeSkipped').join('\n'), /a rollout would end its pod default\/web-/)
  }
})

test('WNT-21 a tool that takes the annotations of a restart away gets one restart per drain', async (t) => {
  const story = await Story.open(t)
  const { local } = story.world.cluster.server
  story.deleteNode(story.nodeNames()[0])
  await story.until(() => {
    if (story.restarts.size > 0)
      local.patch(deploymentKind, 'default', 'web', {
        metadata: { annotations: { 'tenon.sh/surged-for': null } },
        spec: { template: { metadata: { annotations: { [restartedAt]: null } } } },
      })
    return false
  }, 2 * minutes)
  assert.equal(story.restarts.size, 1)
  assert.ok(story.leastReady >= 1)
})

test('PDBs keep the node of a Deployment whose last rollout failed, as a new one would not end either', async (t) => {
  const story = await Story.open(t, { spec: { progressDeadlineSeconds: 60 } })
  const before = story.nodeNames()
  const container = { name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu: '9000' } } }
  story.change({ template: { metadata: { labels }, spec: { containers: [container] } } })
  await story.until(() => false, 2 * minutes)
  const labelled = { spec: { template: { metadata: { labels: { drifted: 'yes' } } } } }
  story.world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'default', labelled)
  await story.until(() => false, 5 * minutes)
  assert.equal(story.restarts.size, 0)
  assert.equal(story.leastReady, 1)
  const node = story.world.nodes().find(({ metadata }) => metadata.name === before[0])
  assert.ok(node !== undefined && node.metadata.deletionTimestamp === undefined)
})

test('a pod that do-not-disrupt holds is replaced first once that is over, and not before', async (t) => {
  const story = await Story.open(t)
  const { local } = story.world.cluster.server
  // Without the PDB, nothing but the surge keeps a ready pod.
  local.delete(kinds.podDisruptionBudget, 'default', 'web')
  const [pod] = story.ready()
  const before = story.nodeNames()
  const annotate = (value: string | null) =>
    local.patch(kinds.pod, 'default', pod?.metadata.name ?? '', {
      metadata: { annotations: { 'karpenter.sh/do-not-disrupt': value } },
    })
  annotate('true')
  await story.until(() => false, 2 * seconds)
  story.deleteNode(before[0])
  await story.until(() => false, minutes)
  assert.equal(story.restarts.size, 0)
  annotate(null)
  assert.ok(await story.until(() => story.isGone(before), 5 * minutes))
  assert.deepEqual([story.restarts.size, story.leastReady], [1, 1])
})
