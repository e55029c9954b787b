/** One object that cannot be read holds up nobody, and costs nobody a node (reports.md 10). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { karpenterKinds, type KubeObject, kinds, type ResourceType } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { type LogFields, type Logger, silentLogger } from '@tenon/runtime'
import { healthyCluster, instanceIds, podNames } from '../answers/healthy-cluster.test-support.ts'
import { nodeClassKind } from '../exoscale/manifests.test-support.ts'
import { type RunningOperator, type World } from '../world.ts'
import { Misshapen, put } from './misshapen-objects.test-support.ts'

const minute = 60_000
const second = 1000
const settings = {
  featureGates: { ...defaultSettings.featureGates, nodeOverlay: true },
  defaultSpread: [
    { maxSkew: 5, topologyKey: 'topology.kubernetes.io/zone', whenUnsatisfiable: 'ScheduleAnyway' as const },
  ],
  ignoreDraRequests: false,
}

/** A path in an object and what is there; undefined where the field is missing. */
type Malformation = readonly [path: string, value: unknown]

const ofMetadata: readonly Malformation[] = [
  ['metadata.labels', 'x'],
  ['metadata.labels', { a: 1 }],
  ['metadata.annotations', [1]],
  ['metadata.finalizers', { a: 'b' }],
  ['metadata.ownerReferences', [null]],
]
/** What Kubernetes takes for absent. */
const nulls: readonly Malformation[] = [
  ['metadata.labels', null],
  ['metadata.annotations', null],
  ['metadata.ownerReferences', null],
]

interface Story {
  readonly type: ResourceType
  readonly namespaced?: boolean
  /** Makes the object, or finds one that is there. */
  readonly make: (world: World) => string
  readonly bends: readonly Malformation[]
  /** Malformations under which the object is whole. */
  readonly harmless?: readonly Malformation[]
}

/** What is logged as an error or a warning. */
class Log {
  readonly errors: string[] = []
  readonly warnings: string[] = []

  logger(own: LogFields = {}): Logger {
    return {
      ...silentLogger,
      warn: (message, fields) => this.warnings.push(`${message} ${JSON.stringify(fields)}`),
      error: (message, fields = {}) => {
        const { error } = { ...own, ...fields }
        this.errors.push(`${message} ${error instanceof Error ? error.stack : String(error)}`)
      },
      with: (more) => this.logger({ ...own, ...more }),
    }
  }
}

class Running {
  readonly world: World
  readonly log: Log
  readonly misshapen: Misshapen
  #pods = 3
  #touched = 0
  operator: RunningOperator
  readonly story: Story
  readonly name: string

  constructor(
    world: World,
    log: Log,
    misshapen: Misshapen,
    { story, operator }: { readonly story: Story; readonly operator: RunningOperator },
  ) {
    this.operator = operator
    this.world = world
    this.log = log
    this.misshapen = misshapen
    this.story = story
    this.name = story.make(world)
  }

  /** The API server tells of the object once more. */
  touch(): void {
    const annotations = { 'example.com/touched': String(++this.#touched) }
    const namespace = this.story.namespaced === true ? 'default' : undefined
    this.world.cluster.server.local.patch(this.story.type, namespace, this.name, {
      metadata: { annotations },
    })
  }

  /** One more pod needs one more node, and gets it. */
  async serveOneMore(what: string): Promise<void> {
    this.world.scale('web', ++this.#pods)
    await this.world.clock.advanceUntil(() => this.#serving() >= this.#pods, 6 * minute)
    assert.equal(this.#serving(), this.#pods, `${what}: the next pod has no node`)
  }

  #serving(): number {
    return this.world
      .pods()
      .filter(({ metadata, status }) => metadata.labels?.['app'] === 'web' && status?.phase === 'Running')
      .length
  }

  /** Whether the log says of the object what is wrong with it. */
  isToldOf(path: string): boolean {
    return this.log.warnings.some(
      (line) => line.includes('is invalid') && line.includes(`/${this.name}`) && line.includes(path),
    )
  }

  events(): readonly string[] {
    return this.world.cluster.server.local
      .list(kinds.event as ResourceType<KubeObject & EventFields>)
      .filter(({ reason, involvedObject }) => reason === 'Unreadable' && involvedObject.name === this.name)
      .map(({ message }) => message)
  }
}

interface EventFields {
  readonly reason: string
  readonly message: string
  readonly involvedObject: { readonly name: string }
}

async function open(t: TestContext, story: Story): Promise<Running> {
  const log = new Log()
  const misshapen = new Misshapen()
  const operators: RunningOperator[] = []
  const world = await healthyCluster(
    t,
    3,
    { settings, apiPath: misshapen.path, logger: log.logger() },
    (operator) => operators.push(operator),
  )
  const running = new Running(world, log, misshapen, { story, operator: operators[0] as RunningOperator })
  await world.clock.advance(30 * second)
  return running
}

const bare = (apiVersion: string, kind: string, rest: object, namespace?: string): KubeObject => ({
  apiVersion,
  kind,
  metadata: { name: 'odd', ...(namespace !== undefined && { namespace }) },
  ...rest,
})
const created =
  (type: ResourceType, object: KubeObject) =>
  (world: World): string => {
    world.create(type, object)
    return object.metadata.name
  }
const template = { metadata: { labels: { app: 'odd' } }, spec: { containers: [{ name: 'a', image: 'a' }] } }
const nowhere = { ...template, spec: { ...template.spec, nodeSelector: { 'example.com/nowhere': 'x' } } }
const selecting = { selector: { matchLabels: { app: 'odd' } } }
const conditions: readonly Malformation[] = [
  ['status', 'x'],
  ['status.conditions', 'x'],
  ['status.conditions', [null]],
  ['status.conditions', [{ type: 'Ready', status: 'True', lastTransitionTime: 'yesterday' }]],
]
const ofTemplate = (path: string): readonly Malformation[] => [
  [`${path}.nodeClassRef`, undefined],
  [`${path}.nodeClassRef`, 'x'],
  [`${path}.requirements`, 'x'],
  [`${path}.requirements`, [null]],
  [`${path}.requirements`, [{ key: 'a', operator: 'In', values: 'x' }]],
  [`${path}.taints`, {}],
  [`${path}.taints`, [{ effect: 'NoSchedule' }]],
  [`${path}.startupTaints`, [5]],
  [`${path}.expireAfter`, 'soon'],
  [`${path}.terminationGracePeriod`, 'soon'],
]

const stories: Readonly<Record<string, Story>> = {
  NodePool: {
    type: karpenterKinds.nodePool,
    make: (world) => {
      const [pool] = world.cluster.server.local.list(karpenterKinds.nodePool)
      assert.ok(pool)
      world.create(karpenterKinds.nodePool, { ...pool, metadata: { name: 'odd' } })
      return 'odd'
    },
    bends: [
      ...ofMetadata,
      ['spec', undefined],
      ['spec.template', undefined],
      ['spec.template', 'x'],
      ['spec.template.spec', undefined],
      ['spec.template.metadata', []],
      ['spec.template.metadata', { labels: 5 }],
      ...ofTemplate('spec.template.spec'),
      ['spec.disruption', 'x'],
      ['spec.disruption.budgets', [null]],
      ['spec.disruption.consolidateAfter', 5],
      ['spec.limits', 'x'],
      ['spec.limits', { cpu: [] }],
      ['spec.weight', 'heavy'],
      ['spec.replicas', 'many'],
      ...conditions,
      ['status.resources', { cpu: {} }],
    ],
    harmless: [
      ...nulls,
      ['spec.template.spec.taints', null],
      ['spec.template.metadata', null],
      ['spec.disruption.budgets', null],
      ['spec.limits', null],
    ],
  },
  NodeClaim: {
    type: karpenterKinds.nodeClaim,
    make: (world) => world.claims()[0]?.metadata.name ?? '',
    bends: [
      ...ofMetadata,
      ['spec', undefined],
      ['spec', 'x'],
      ...ofTemplate('spec'),
      ['spec.resources', { requests: 'x' }],
      ...conditions,
      ['status.capacity', 'x'],
      ['status.allocatable', { cpu: true }],
      ['status.providerID', 5],
      ['metadata.creationTimestamp', 'yesterday'],
    ],
    harmless: [
      ['spec.taints', null],
      ['spec.resources', null],
      ['metadata.annotations', null],
    ],
  },
  Node: {
    type: kinds.node,
    make: (world) => world.nodes()[0]?.metadata.name ?? '',
    bends: [
      ...ofMetadata,
      ['spec', 'x'],
      ['spec.taints', 'x'],
      ['spec.taints', [null]],
      ['spec.providerID', 5],
      ...conditions,
      ['status.capacity', []],
      ['status.allocatable', { memory: 'much' }],
    ],
    harmless: [['spec.taints', null]],
  },
  ExoscaleNodeClass: {
    type: nodeClassKind,
    make: (world) => {
      const [nodeClass] = world.cluster.server.local.list(nodeClassKind)
      assert.ok(nodeClass)
      world.create(nodeClassKind, { ...nodeClass, metadata: { name: 'odd' } })
      return 'odd'
    },
    bends: [...ofMetadata, ...conditions],
    harmless: [...nulls, ['status', null]],
  },
  Pod: {
    type: kinds.pod,
    namespaced: true,
    make: created(kinds.pod, bare('v1', 'Pod', { spec: nowhere.spec }, 'default')),
    bends: [
      ...ofMetadata,
      ['spec', undefined],
      ['spec', 'x'],
      ['spec.containers', undefined],
      ['spec.containers', [null]],
      ['spec.containers', [{ name: 'a', resources: { requests: { cpu: 'much' } } }]],
      ['spec.tolerations', 'x'],
      ['spec.tolerations', [null]],
      ['spec.nodeSelector', 'x'],
      ['spec.nodeName', 5],
      ['spec.affinity', []],
      ['spec.topologySpreadConstraints', [{}]],
      ['spec.volumes', [null]],
      ['spec.priority', 'high'],
      ['spec.schedulingGates', 'x'],
      ['status', 'x'],
      ['status.conditions', 'x'],
      ['status.conditions', [null]],
    ],
    harmless: [...nulls, ['spec.tolerations', null], ['spec.volumes', null], ['status.conditions', null]],
  },
  DaemonSet: {
    type: kinds.daemonSet,
    namespaced: true,
    make: created(
      kinds.daemonSet,
      bare('apps/v1', 'DaemonSet', { spec: { ...selecting, template: nowhere } }, 'default'),
    ),
    bends: [
      ...ofMetadata,
      ['spec', undefined],
      ['spec.template', undefined],
      ['spec.template', 'x'],
      ['spec.template.spec', undefined],
      ['spec.template.metadata', { labels: [] }],
      ['spec.template.spec.containers', 'x'],
      ['spec.template.spec.tolerations', [null]],
    ],
    harmless: [...nulls, ['spec.template.metadata.labels', null], ['spec.template.spec.tolerations', null]],
  },
  PodDisruptionBudget: {
    type: kinds.podDisruptionBudget,
    namespaced: true,
    make: created(
      kinds.podDisruptionBudget,
      bare('policy/v1', 'PodDisruptionBudget', { spec: { ...selecting, maxUnavailable: 1 } }, 'default'),
    ),
    bends: [
      ...ofMetadata,
      ['spec', undefined],
      ['spec.selector', 'x'],
      ['spec.selector', { matchLabels: [] }],
      ['spec.selector', { matchExpressions: [null] }],
      ['spec.selector', { matchExpressions: [{ key: 'app', operator: 'Perhaps' }] }],
      ['spec.maxUnavailable', {}],
      ['status', 'x'],
      ['status.disruptionsAllowed', 'some'],
    ],
    harmless: [...nulls, ['spec.selector', null], ['status', null]],
  },
  PersistentVolumeClaim: {
    type: kinds.persistentVolumeClaim,
    namespaced: true,
    make: (world) => {
      world.create(
        kinds.persistentVolumeClaim,
        bare(
          'v1',
          'PersistentVolumeClaim',
          {
            spec: {
              accessModes: ['ReadWriteOnce'],
              storageClassName: 'none',
              resources: { requests: { storage: '1Gi' } },
            },
          },
          'default',
        ) as never,
      )
      const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'odd' } }]
      world.create(kinds.pod, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'storing', namespace: 'default' },
        spec: { ...template.spec, volumes },
      })
      return 'odd'
    },
    bends: [
      ...ofMetadata,
      ['spec', undefined],
      ['spec', 'x'],
      ['spec.accessModes', 'x'],
      ['spec.storageClassName', 5],
      ['spec.selector', []],
      ['status', 'x'],
    ],
    harmless: [...nulls, ['spec.selector', null]],
  },
  PersistentVolume: {
    type: kinds.persistentVolume,
    make: created(
      kinds.persistentVolume,
      bare('v1', 'PersistentVolume', {
        spec: {
          capacity: { storage: '1Gi' },
          accessModes: ['ReadWriteOnce'],
          storageClassName: 'none',
          csi: { driver: 'csi.example.com', volumeHandle: 'a' },
        },
      }),
    ),
    bends: [
      ...ofMetadata,
      ['spec', undefined],
      ['spec.csi', 'x'],
      ['spec.nodeAffinity', { required: { nodeSelectorTerms: 'x' } }],
      ['spec.accessModes', {}],
      ['spec.capacity', 'x'],
      ['spec.claimRef', 'x'],
    ],
    harmless: [...nulls, ['spec.nodeAffinity', null], ['spec.claimRef', null]],
  },
  StorageClass: {
    type: kinds.storageClass,
    make: created(
      kinds.storageClass,
      bare('storage.k8s.io/v1', 'StorageClass', {
        provisioner: 'csi.example.com',
        volumeBindingMode: 'WaitForFirstConsumer',
      }),
    ),
    bends: [
      ...ofMetadata,
      ['provisioner', undefined],
      ['volumeBindingMode', 5],
      ['allowedTopologies', 'x'],
      ['allowedTopologies', [{ matchLabelExpressions: [null] }]],
    ],
    harmless: [...nulls, ['allowedTopologies', null]],
  },
  CSINode: {
    type: kinds.csiNode,
    make: (world) => {
      const name = world.nodes()[0]?.metadata.name ?? ''
      if (world.cluster.server.local.get(kinds.csiNode, undefined, name) === undefined) {
        const drivers = [
          { name: 'csi.example.com', nodeID: 'a', topologyKeys: [], allocatable: { count: 5 } },
        ]
        world.create(kinds.csiNode, {
          apiVersion: 'storage.k8s.io/v1',
          kind: 'CSINode',
          metadata: { name },
          spec: { drivers },
        })
      }
      return name
    },
    bends: [
      ...ofMetadata,
      ['spec', undefined],
      ['spec.drivers', 'x'],
      ['spec.drivers', [null]],
      ['spec.drivers', [{ name: 'a', allocatable: { count: 'some' } }]],
    ],
    harmless: [...nulls, ['spec.drivers', null]],
  },
  VolumeAttachment: {
    type: kinds.volumeAttachment,
    make: (world) => {
      world.create(
        kinds.volumeAttachment,
        bare('storage.k8s.io/v1', 'VolumeAttachment', {
          spec: {
            attacher: 'csi.example.com',
            nodeName: world.nodes()[0]?.metadata.name ?? '',
            source: { persistentVolumeName: 'odd' },
          },
        }) as never,
      )
      return 'odd'
    },
    bends: [
      ...ofMetadata,
      ['spec', undefined],
      ['spec.source', undefined],
      ['spec.source', 'x'],
      ['spec.nodeName', 5],
    ],
    harmless: nulls,
  },
  Namespace: {
    type: kinds.namespace,
    make: created(kinds.namespace, bare('v1', 'Namespace', {})),
    bends: ofMetadata,
    harmless: [...nulls, ['status', null]],
  },
  NodeOverlay: {
    type: karpenterKinds.nodeOverlay,
    make: created(
      karpenterKinds.nodeOverlay,
      bare('karpenter.sh/v1alpha1', 'NodeOverlay', {
        spec: {
          requirements: [
            { key: 'node.kubernetes.io/instance-type', operator: 'In', values: ['standard.small'] },
          ],
          priceAdjustment: '+10%',
        },
      }),
    ),
    bends: [
      ...ofMetadata,
      ['spec', undefined],
      ['spec.requirements', 'x'],
      ['spec.requirements', [null]],
      ['spec.capacity', 'x'],
      ['spec.weight', 'heavy'],
      ...conditions,
    ],
    harmless: [...nulls, ['status', null]],
  },
  Service: {
    type: kinds.service,
    namespaced: true,
    make: created(
      kinds.service,
      bare('v1', 'Service', { spec: { selector: { app: 'odd' }, ports: [{ port: 80 }] } }, 'default'),
    ),
    bends: [...ofMetadata, ['spec', 'x'], ['spec.selector', 'x'], ['spec.selector', { app: 5 }]],
    harmless: [...nulls, ['spec', undefined], ['spec.selector', null]],
  },
  ReplicationController: {
    type: kinds.replicationController,
    namespaced: true,
    make: created(
      kinds.replicationController,
      bare(
        'v1',
        'ReplicationController',
        { spec: { replicas: 0, selector: { app: 'odd' }, template } },
        'default',
      ),
    ),
    bends: [...ofMetadata, ['spec', 'x'], ['spec.selector', 'x']],
    harmless: [...nulls, ['spec', undefined]],
  },
  ReplicaSet: {
    type: kinds.replicaSet,
    namespaced: true,
    make: created(
      kinds.replicaSet,
      bare('apps/v1', 'ReplicaSet', { spec: { replicas: 0, ...selecting, template } }, 'default'),
    ),
    bends: [...ofMetadata, ['spec', undefined], ['spec.selector', undefined], ['spec.selector', 'x']],
    harmless: nulls,
  },
  StatefulSet: {
    type: kinds.statefulSet,
    namespaced: true,
    make: created(
      kinds.statefulSet,
      bare(
        'apps/v1',
        'StatefulSet',
        { spec: { replicas: 0, serviceName: 'odd', ...selecting, template } },
        'default',
      ),
    ),
    bends: [...ofMetadata, ['spec', undefined], ['spec.selector', []]],
    harmless: nulls,
  },
  ResourceSlice: {
    type: kinds.resourceSlice,
    make: (world) => {
      world.create(kinds.resourceSlice, {
        apiVersion: 'resource.k8s.io/v1',
        kind: 'ResourceSlice',
        metadata: { name: 'odd' },
        spec: {
          driver: 'gpu.example.com',
          nodeName: world.nodes()[0]?.metadata.name ?? '',
          pool: { name: 'a', generation: 1, resourceSliceCount: 1 },
        },
      })
      return 'odd'
    },
    bends: [...ofMetadata, ['spec', undefined], ['spec.pool', 'x'], ['spec.nodeName', 5]],
    harmless: nulls,
  },
}

for (const [kind, story] of Object.entries(stories)) {
  test(`RPT-39 a ${kind} of another shape than the API promises holds up nobody`, async (t) => {
    const running = await open(t, story)
    const { world, log, misshapen, name } = running
    const assertNothingLost = (before: Fleet, what: string) => {
      assert.deepEqual(log.errors, [], what)
      assert.deepEqual(missing(before.instances, instanceIds(world)), [], `${what}: instances`)
      assert.deepEqual(missing(before.pods, podNames(world)), [], `${what}: pods`)
    }
    const { harmless = [], bends } = story
    for (const malformation of [...harmless, ...bends]) {
      const [path, value] = malformation
      const what = `${kind} ${name} with ${path} ${JSON.stringify(value)}`
      const before = { pods: podNames(world), instances: instanceIds(world) }
      log.warnings.length = 0
      misshapen.bend(kind, name, put(path, value))
      running.touch()
      await world.clock.advance(20 * second)
      // Launches take most of the time; what one kind of field does to them is seen once.
      if (!path.startsWith('metadata.') || path === 'metadata.labels') await running.serveOneMore(what)
      misshapen.restore()
      running.touch()
      await world.clock.advance(10 * second)
      assertNothingLost(before, what)
      // What is wrong with a pod is said when it is decided about.
      if (kind !== 'Pod') assert.equal(running.isToldOf(path), !harmless.includes(malformation), what)
    }
    if (kind !== 'Pod')
      assert.match(
        running.events().join('\n'),
        new RegExp(`The ${kind} is invalid.*metadata.labels must be a map`),
      )
  })
}

/** Of kinds whose absence would mean something. */
const absences: readonly (readonly [kind: string, malformation: Malformation])[] = [
  ['NodePool', ['spec', undefined]],
  ['NodePool', ['metadata.labels', 'x']],
  ['NodeClaim', ['spec', undefined]],
  ['NodeClaim', ['status', 'x']],
  ['NodeClaim', ['metadata.labels', 'x']],
  ['Node', ['spec', 'x']],
  ['Node', ['status.conditions', 'x']],
  ['Node', ['metadata.labels', 'x']],
  ['ExoscaleNodeClass', ['status.conditions', 'x']],
  ['Pod', ['spec', undefined]],
  ['PodDisruptionBudget', ['spec', undefined]],
  ['VolumeAttachment', ['spec.source', 'x']],
]

for (const [kind, [path, value]] of absences) {
  test(`RPT-39 a ${kind} with ${path} ${JSON.stringify(value)} that a new process finds costs nobody a node in two hours`, async (t) => {
    const running = await open(t, stories[kind] as Story)
    const { world, log, misshapen, name } = running
    const before = { pods: podNames(world), instances: instanceIds(world) }
    misshapen.bend(kind, name, put(path, value))
    running.touch()
    await world.bury(running.operator)
    running.operator = await world.startOperator()
    await running.serveOneMore('misshapen')
    await world.clock.advance(120 * minute)
    assert.deepEqual(log.errors, [])
    misshapen.restore()
    running.touch()
    await running.serveOneMore('fixed')
    assert.deepEqual(missing(before.instances, instanceIds(world)), [], 'instances')
    assert.deepEqual(missing(before.pods, podNames(world)), [], 'pods')
    assert.equal(instanceIds(world).length, world.claims().length)
  })
}

interface Fleet {
  readonly pods: readonly string[]
  readonly instances: readonly string[]
}

function missing(before: readonly string[], now: readonly string[]): readonly string[] {
  return before.filter((each) => !now.includes(each))
}
