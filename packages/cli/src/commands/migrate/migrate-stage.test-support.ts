/** An embedded cluster with an SKS nodepool and a NodePool in the simulated Exoscale, and `tenon migrate` on virtual time. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { karpenterKinds, type KubeObject, kinds, type NodePool, type ResourceType } from '@tenon/api'
import { createCredentials } from '@tenon/devcluster'
import {
  type AccessRight,
  createAccessReviews,
  createKubeClient,
  fencedTransport,
  type LoadedKubeConfig,
} from '@tenon/kube'
import { nodeGroupModuleOver } from '@tenon/provider-exoscale'
import { type HttpRequest, SeededRandom, silentLogger, type Transport, VirtualClock } from '@tenon/runtime'
import { aDeployment, deploymentKind, Mortality, type RunningOperator, World } from '@tenon/world'
import type { Io } from '../../io.ts'
import { snapshotOfObjects } from '../../source/objects-snapshot.ts'
import { MigrationLock } from './lock.ts'
import { migrate, type MigrateOrder } from './migrate.ts'
import { jsonPrinter, textPrinter } from './print.ts'

export const minute = 60_000
const address = 'https://127.0.0.1:6443'
const nodeClassKind: ResourceType = {
  group: 'karpenter.exoscale.com',
  version: 'v1',
  kind: 'ExoscaleNodeClass',
  plural: 'exoscalenodeclasses',
  namespaced: false,
}
const nodeClass = {
  apiVersion: 'karpenter.exoscale.com/v1',
  kind: 'ExoscaleNodeClass',
  metadata: { name: 'general' },
  spec: { imageTemplateSelector: {} },
}
const nodePool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'general' },
  spec: {
    template: {
      spec: {
        nodeClassRef: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name: 'general' },
        requirements: [
          {
            key: 'node.kubernetes.io/instance-type',
            operator: 'In',
            values: ['standard.large', 'standard.extra-large'],
          },
        ],
      },
    },
    disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '30s', budgets: [{ nodes: '100%' }] },
  },
}
const env = {
  EXOSCALE_ZONE: 'ch-gva-2',
  EXOSCALE_API_KEY: 'EXOtenon0000000000000000001',
  EXOSCALE_API_SECRET: 'simulated-secret',
  EXOSCALE_API_ENDPOINT: 'http://127.0.0.1/v2',
}
export const there: MigrateOrder = {
  group: { kind: 'sks-nodepool', name: 'workers' },
  nodePool: 'general',
  direction: 'there',
  isConfirmed: true,
  limitMs: 10 * minute,
}
export const back: MigrateOrder = { ...there, direction: 'back' }

/** Making keys takes long: one set serves all clusters of this file. */
const credentials = await createCredentials(new VirtualClock().now())

export interface Run {
  readonly code: 0 | 1
  readonly out: string
  readonly err: string
  /** Method and path, without those of the lease. */
  readonly writes: readonly string[]
  /** Paths with their queries. */
  readonly reads: readonly string[]
}

export interface RunOptions {
  /** The write after which the process gets no answer any more. */
  readonly crashAt?: number
  readonly mayNot?: (right: AccessRight) => boolean
  readonly output?: 'text' | 'json'
  /** Of the API key of the cloud. */
  readonly secret?: string
}

/** A migration under way. */
export interface Begun {
  readonly isOver: () => boolean
  /** Something other than its lease. */
  readonly hasWritten: () => boolean
  readonly end: () => Run | undefined
  readonly interrupt: () => void
  /** It gets no answer any more. */
  readonly kill: () => void
}

/** A cluster with an SKS nodepool, a NodePool, and workloads with PodDisruptionBudgets. */
export class Stage {
  readonly world: World
  operator: RunningOperator
  /** Moments at which fewer pods of an application were Ready than its budget wants. */
  readonly violations: string[] = []
  #runs = 0

  private constructor(world: World, operator: RunningOperator) {
    this.world = world
    this.operator = operator
  }

  static async open(
    t: TestContext,
    size: number,
    replicas: Readonly<Record<string, number>>,
  ): Promise<Stage> {
    const world = await World.start({ seed: 9, provider: 'exoscale', credentials })
    world.create(nodeClassKind, nodeClass)
    world.create(karpenterKinds.nodePool, nodePool)
    const pool = { name: 'workers', type: 'standard.medium', prefix: 'workers', joins: true as const }
    world.cluster.cloud.add({ nodepools: [{ ...pool, size, id: 'b0020000-0000-4000-8000-000000000001' }] })
    await world.clock.advance(2 * minute)
    for (const [name, count] of Object.entries(replicas)) {
      world.create(deploymentKind, aDeployment(name, count))
      world.create(kinds.podDisruptionBudget, {
        apiVersion: 'policy/v1',
        kind: 'PodDisruptionBudget',
        metadata: { name, namespace: 'default' },
        spec: { maxUnavailable: 1, selector: { matchLabels: { app: name } } },
      })
    }
    await world.clock.advance(minute)
    const operator = await world.startOperator()
    await world.clock.advance(minute)
    const stage = new Stage(world, operator)
    assert.equal(stage.members().length, size)
    stage.#judge(replicas)
    t.after(async () => {
      await world.bury(stage.operator)
      await world.stop()
    })
    return stage
  }

  /** At every change of a pod. */
  #judge(replicas: Readonly<Record<string, number>>): void {
    const look = (pod: KubeObject): void => {
      const name = pod.metadata.labels?.['app'] ?? ''
      const count = replicas[name]
      if (count === undefined) return
      const ready = this.ready(name)
      if (ready < count - 1)
        this.violations.push(`${name}: ${ready} of ${count} at ${this.world.clock.now()}`)
    }
    this.world.cluster.server.local.subscribe(kinds.pod, { added: look, updated: look, deleted: look })
  }

  node(name: string) {
    return this.world.cluster.server.local.get(kinds.node, undefined, name)
  }

  annotate(name: string, annotations: Readonly<Record<string, string>>): void {
    this.world.cluster.server.local.patch(kinds.node, undefined, name, { metadata: { annotations } })
  }

  ready(app: string): number {
    return this.world
      .pods()
      .filter(
        ({ metadata, status }) =>
          metadata.labels?.['app'] === app &&
          metadata.deletionTimestamp === undefined &&
          status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true,
      ).length
  }

  members() {
    return this.world.cluster.cloud.instances().filter(({ instancePoolId }) => instancePoolId !== undefined)
  }

  /** Apps' pods by the kind of their node. */
  placesOf(app: string): readonly string[] {
    const nodes = new Map(this.world.nodes().map((node) => [node.metadata.name, node]))
    return this.world.pods().flatMap(({ metadata, spec }) => {
      if (metadata.labels?.['app'] !== app) return []
      const pool = nodes.get(spec.nodeName ?? '')?.metadata.labels?.['karpenter.sh/nodepool']
      return [spec.nodeName === undefined ? 'nowhere' : (pool ?? 'sks')]
    })
  }

  pool(): NodePool {
    return this.world.cluster.server.local.get(karpenterKinds.nodePool, undefined, 'general') as NodePool
  }

  /** Somebody else adds a member to the SKS nodepool. */
  async grow(): Promise<void> {
    const { clock, cluster } = this.world
    const client = createKubeClient({ transport: this.world.kubeTransport(), clock })
    const access = { client, server: address }
    const groups = nodeGroupModuleOver(() => ({ send: cluster.cloud.handle })).open({
      env,
      clusters: { workload: access, management: access },
      discoverySpecs: [],
      nodeGroupSpecs: ['0:100:workers'],
      allowsEmptyGroups: true,
      cloud: { fenced: (inner) => inner, userAgent: 'test' },
      runtime: { clock, random: new SeededRandom(1), logger: silentLogger },
    })
    const { signal } = new AbortController()
    await groups.start?.(signal)
    await groups.refresh(signal)
    const [group] = groups.list()
    await groups.increaseSize(group?.id ?? '', 1, signal)
  }

  /** Runs it to its end. Undefined: it died at the write of `crashAt`. */
  async run(order: MigrateOrder, options: RunOptions = {}): Promise<Run | undefined> {
    const begun = this.begin(order, options)
    await this.world.clock.advanceUntil(() => begun.isOver(), 6 * 60 * minute)
    const end = begun.end()
    begun.interrupt()
    return end
  }

  begin(
    order: MigrateOrder,
    {
      crashAt = Number.POSITIVE_INFINITY,
      mayNot = () => false,
      output = 'text',
      secret = env.EXOSCALE_API_SECRET,
    }: RunOptions = {},
  ): Begun {
    const { world } = this
    const { clock } = world
    const process = new Mortality(crashAt, 'after')
    const writes: string[] = []
    const reads: string[] = []
    process.onWrite = ({ method, path }: HttpRequest) => {
      writes.push(`${method} ${path.split('?')[0] ?? ''}`)
    }
    const server: Transport = {
      send: (request, signal) => {
        if (request.method === 'GET') reads.push(request.path)
        return world.kubeTransport().send(request, signal)
      },
    }
    const lock = new MigrationLock()
    const fenced = (transport: Transport) => fencedTransport(transport, () => lock.isHeld)
    const transport = fenced(process.guard(server))
    const cloud: Transport = process.guard({ send: world.cluster.cloud.handle })
    const client = createKubeClient({ transport, clock })
    /** Its writes do not count as steps of the migration. */
    const beside: Transport = {
      send: (request, signal) =>
        process.isDead ? new Promise(() => undefined) : world.kubeTransport().send(request, signal),
    }
    const ending = new AbortController()
    let out = ''
    const io: Io = {
      env: {},
      cwd: '/',
      out: (text) => (out += text),
      err: () => undefined,
      input: () => Promise.resolve(''),
      isTerminal: false,
      size: () => ({ columns: 80, rows: 24 }),
      interrupted: ending.signal,
    }
    const config: LoadedKubeConfig = {
      transport,
      server: address,
      namespace: 'default',
      context: 'world',
      source: 'world',
      upgradeTo: () => Promise.reject(new Error('no connection of a world is upgraded')),
      close: () => undefined,
    }
    const module = nodeGroupModuleOver(() => cloud)
    const cluster = { client, server: address }
    const reviews = createAccessReviews({ transport: beside, clock })
    let ended: Run | undefined
    const toEnd = async (): Promise<void> => {
      try {
        await migrate(
          {
            client,
            clock,
            lock,
            lockOptions: {
              client: createKubeClient({ transport: beside, clock }),
              clock,
              random: new SeededRandom(1),
              identity: `migration-${++this.#runs}`,
            },
            openGroups: (names) =>
              module.open({
                env: { ...env, EXOSCALE_API_SECRET: secret },
                clusters: { workload: cluster, management: cluster },
                discoverySpecs: [],
                nodeGroupSpecs: names.map((name) => `0:2147483647:${name}`),
                allowsEmptyGroups: true,
                cloud: { fenced, userAgent: 'test' },
                runtime: { clock, random: new SeededRandom(1), logger: silentLogger },
              }),
            printer: output === 'json' ? jsonPrinter(io.out, clock) : textPrinter(io.out),
            reviews: {
              isAllowed: async (right, subject, signal) =>
                (await reviews.isAllowed(right, subject, signal)) && !mayNot(right),
            },
            snapshot: () => snapshotOfObjects(io, {}, { client, clock, config }),
            signal: ending.signal,
          },
          order,
        )
        ended = { code: 0, out, err: '', writes, reads }
      } catch (error) {
        ended = { code: 1, out, err: (error as Error).message, writes, reads }
      }
    }
    void toEnd()
    return {
      isOver: () => ended !== undefined || process.isDead,
      hasWritten: () => writes.length > 0,
      end: () => ended,
      interrupt: () => {
        ending.abort()
      },
      kill: () => {
        process.crash()
      },
    }
  }
}
