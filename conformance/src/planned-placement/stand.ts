/** The operator in this process on a real control plane, with its plans recorded. */
import {
  conditionOf,
  karpenterKinds,
  kinds,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  type Pod,
} from '@tenon/api'
import {
  type Change,
  createCacheRegistry,
  createEventRecorder,
  createKubeClient,
  isKubeError,
  type KubeClient,
  loadKubeConfig,
} from '@tenon/kube'
import { defaultSettings, Operator, type Settings, ThreadDecider } from '@tenon/operator'
import { defaultCatalogue, KwokProvider, kwokNodeClassKind } from '@tenon/provider-kwok'
import { eventLoopTurns, SeededRandom, SystemClock } from '@tenon/runtime'
import { applyCrds } from '../scheduling-proof/autoscaler.ts'
import { deployment, proofKinds } from '../scheduling-proof/objects.ts'
import { Notes } from './notes.ts'
import { type RequestCount, RequestCounts } from './requests.ts'
import { type Span, Timeline } from './timeline.ts'

const pollMs = 50
const clearingMs = 60_000
const preparingMs = 60_000
const parallelWrites = 16
const poolName = 'planned'
const className = 'planned-placement'
/** As the controller's command sets it. */
const rate = { perSecond: 200, burst: 300 }

export type Requirements = NonNullable<NodePool['spec']['template']['spec']['requirements']>

/** Pods of one Deployment. */
export interface Group {
  readonly name: string
  readonly replicas: number
  readonly cpu: string
  readonly memory: string
}

export interface PlayOptions {
  /** Requirements of the nodes, besides Linux and on-demand. */
  readonly requirements?: Requirements
  readonly withinMs: number
  /** Launches start only once the scheduler has rejected every pod, so that one decision sees them all. */
  readonly isRefusedFirst?: boolean
}

export interface Outcome {
  readonly pods: number
  readonly bound: number
  readonly wherePlanned: number
  readonly nodes: number
  /** Number of NodeClaims of each decision that launched some. */
  readonly launches: readonly number[]
  readonly pricePerHour: number
  /** Longest time from a Node's creation to its registration. */
  readonly slowestRegistrationMs: number
  /** From the first Deployment (or, if pods were rejected first, the NodePool) until every pod was Ready. */
  readonly seconds: number
  /** CPU time of this process in that time. */
  readonly cpuSeconds: number
  readonly nominations: number
  readonly steps: readonly Span[]
  readonly requests: readonly RequestCount[]
  readonly complaints: readonly string[]
}

interface Parts {
  readonly clock: SystemClock
  readonly client: KubeClient
  readonly operator: Operator
  readonly notes: Notes
  readonly timeline: Timeline
  readonly requests: RequestCounts
  readonly close: () => void
}

/** An operator with the provider `kwok`. */
export class Stand {
  readonly #parts: Parts
  readonly #appearedAt = new Map<string, number>()
  readonly #registeredAt = new Map<string, number>()

  private constructor(parts: Parts) {
    this.#parts = parts
    const { caches } = parts.operator
    caches.nodes.onChange((change) => {
      this.#seeNode(change)
    })
    caches.pods.onChange((change) => {
      this.#seePod(change)
    })
  }

  static async start(kubeconfigPath: string, settings: Partial<Settings> = {}): Promise<Stand> {
    const clock = new SystemClock()
    const random = new SeededRandom('planned-placement')
    const timeline = new Timeline(() => clock.monotonic())
    const notes = new Notes(clock, timeline)
    const requests = new RequestCounts()
    const config = loadKubeConfig({ env: {}, kubeconfig: kubeconfigPath, clock })
    const client = createKubeClient({
      transport: config.transport,
      clock,
      userAgent: 'planned-placement',
      rate,
      onRequest: requests.onRequest,
    })
    const { transport } = config
    const administrator = createKubeClient({ transport, clock, userAgent: 'administrator' })
    await applyCrds(administrator, clock)
    const logger = notes
    notes.events = createEventRecorder({ client, clock, logger, random })
    const operator = new Operator({
      kubernetes: { client, registry: createCacheRegistry({ client, clock, logger, random }), events: notes },
      runtime: { clock, random, logger },
      provider: new KwokProvider({ client, runtime: { clock, random, logger } }),
      decider: new ThreadDecider({ clock, turns: eventLoopTurns, logger }),
      settings: { ...defaultSettings, ...settings },
    })
    await operator.observe(AbortSignal.timeout(20_000))
    operator.lead()
    const nodeClass = {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: className },
      spec: {},
    }
    await administrator.create(kwokNodeClassKind, nodeClass).catch(ignoringExisting)
    return new Stand({
      clock,
      client: administrator,
      operator,
      notes,
      timeline,
      requests,
      close: () => config.close(),
    })
  }

  /** Creates the groups as Deployments and reports the state once all pods are Ready, or on timeout. */
  async play(
    groups: readonly Group[],
    { requirements = [], withinMs, isRefusedFirst = false }: PlayOptions,
  ): Promise<Outcome> {
    const { clock, client, operator, notes, timeline, requests } = this.#parts
    const { nodePools, pods } = operator.caches
    const total = groups.reduce((sum, { replicas }) => sum + replicas, 0)
    const preparedMs = clock.monotonic() + preparingMs
    const until = async (isSo: () => boolean) => {
      while (!isSo() && clock.monotonic() < preparedMs) await clock.sleep(pollMs)
    }
    const ready = pool(requirements)
    if (isRefusedFirst) {
      await this.#deploy(groups)
      await until(() => pods.size === total && pods.list().every(isRefused))
    } else {
      await client.create(karpenterKinds.nodePool, ready)
      await until(() => nodePools.list().some(isPoolReady))
    }
    requests.reset()
    timeline.start()
    const start = clock.monotonic()
    const cpuBefore = process.cpuUsage()
    if (isRefusedFirst) await client.create(karpenterKinds.nodePool, ready)
    else await this.#deploy(groups)
    const isDone = () => pods.size === total && pods.list().every(isReady)
    while (!isDone() && clock.monotonic() - start < withinMs) await clock.sleep(pollMs)
    const seconds = (clock.monotonic() - start) / 1000
    const { user, system } = process.cpuUsage(cpuBefore)
    const counts = requests.counts
    // A pass in progress may still launch.
    await clock.sleep(3000)
    return {
      pods: total,
      seconds,
      cpuSeconds: (user + system) / 1e6,
      ...(await this.#standing()),
      launches: [...notes.launches],
      nominations: await this.#made(),
      steps: timeline.spans,
      requests: counts,
      complaints: [...notes.complaints],
    }
  }

  async #deploy(groups: readonly Group[]): Promise<void> {
    for (const { name, replicas, cpu, memory } of groups) {
      const { type, object } = deployment(replicas, { namespace: 'default', name, requests: { cpu, memory } })
      await this.#parts.client.create(type, object)
    }
  }

  async #standing(): Promise<
    Pick<Outcome, 'bound' | 'wherePlanned' | 'nodes' | 'pricePerHour' | 'slowestRegistrationMs'>
  > {
    const { operator, notes } = this.#parts
    const { pods, nodes, nodeClaims } = operator.caches
    const claimOf = new Map(
      nodeClaims.list().map(({ metadata, status }) => [status?.nodeName, metadata.name]),
    )
    const bound = pods.list().filter(isBound)
    return {
      bound: bound.length,
      wherePlanned: bound.filter(
        ({ metadata, spec }) => claimOf.get(spec.nodeName) === notes.plan.get(metadata.uid ?? ''),
      ).length,
      nodes: nodes.size,
      pricePerHour: await this.#price(nodeClaims.list()),
      slowestRegistrationMs: Math.max(
        ...nodes.list().map(({ metadata: { name } }) => {
          const registered = this.#registeredAt.get(name) ?? Number.POSITIVE_INFINITY
          return registered - (this.#appearedAt.get(name) ?? 0)
        }),
      ),
    }
  }

  /** The operator's log, for failure reports. */
  get log(): readonly string[] {
    return this.#parts.notes.lines
  }

  /** Removes everything that {@link play} created. */
  async clear(groups: readonly Group[]): Promise<void> {
    const { clock, client, operator, notes } = this.#parts
    const { pods, nodes, nodeClaims, nodePools } = operator.caches
    const background = { propagationPolicy: 'Background' } as const
    await client.delete(karpenterKinds.nodePool, { name: poolName }, background).catch(ignoringGone)
    for (const { name } of groups) {
      const key = { name, namespace: 'default' }
      await client.delete(proofKinds.deployment, key, background).catch(ignoringGone)
    }
    const isOver = () => [pods, nodes, nodeClaims, nodePools].every(({ size }) => size === 0)
    const until = clock.monotonic() + clearingMs
    while (!isOver() && clock.monotonic() < until) {
      await inParallel(nodeClaims.list(), ({ metadata: { name } }) =>
        this.#drop(karpenterKinds.nodeClaim, name),
      )
      await inParallel(nodes.list(), ({ metadata: { name } }) => this.#drop(kinds.node, name))
      await inParallel(pods.list(), ({ metadata: { name, namespace = '' } }) =>
        client.delete(kinds.pod, { name, namespace }, { gracePeriodSeconds: 0 }).catch(ignoringGone),
      )
      await clock.sleep(1000)
    }
    notes.forget()
    this.#appearedAt.clear()
    this.#registeredAt.clear()
  }

  async stop(): Promise<void> {
    await this.#parts.operator.stop()
    this.#parts.close()
  }

  async #drop(type: typeof kinds.node | typeof karpenterKinds.nodeClaim, name: string): Promise<void> {
    await this.#parts.client.delete(type, { name }).catch(ignoringGone)
    await this.#parts.client
      .patch<never>(type as never, { name }, { metadata: { finalizers: null } })
      .catch(ignoringGone)
  }

  /** The on-demand price of the launched types. */
  async #price(claims: readonly NodeClaim[]): Promise<number> {
    const prices = new Map(
      defaultCatalogue().map(({ name, offerings }) => [
        name,
        Math.max(...offerings.map(({ pricePerHour = Number.NaN }) => pricePerHour)),
      ]),
    )
    return claims
      .map(({ metadata }) => prices.get(metadata.labels?.[labels.instanceType] ?? '') ?? Number.NaN)
      .reduce((sum, price) => sum + price, 0)
  }

  async #made(): Promise<number> {
    const metric = this.#parts.operator.metrics.registry.getSingleMetric('karpenter_pods_nominations_total')
    return ((await metric?.get())?.values ?? []).reduce((sum, { value }) => sum + value, 0)
  }

  #seeNode(change: Change<Node>): void {
    const { metadata } = change.object
    const { clock, timeline } = this.#parts
    const now = clock.monotonic()
    if (change.kind === 'added') {
      this.#appearedAt.set(metadata.name, now)
      timeline.mark('node appeared')
    }
    if (metadata.labels?.[labels.registered] !== 'true' || this.#registeredAt.has(metadata.name)) return
    this.#registeredAt.set(metadata.name, now)
    timeline.mark('node opened')
  }

  #seePod(change: Change<Pod>): void {
    const { timeline } = this.#parts
    if (change.kind === 'added') timeline.mark('pod appeared')
    if (change.kind !== 'updated') return
    const { object, old } = change
    const nominated = object.status?.nominatedNodeName ?? ''
    if (nominated !== '' && nominated !== old.status?.nominatedNodeName) timeline.mark('pod nominated')
    if (isRefused(object) && !isRefused(old)) timeline.mark('pod refused')
    const isCleared = nominated === '' && (old.status?.nominatedNodeName ?? '') !== ''
    if (isCleared && !isBound(object)) timeline.mark('nomination cleared')
    if (isBound(object) && !isBound(old)) timeline.mark('pod bound')
    if (isReady(object) && !isReady(old)) timeline.mark('pod ready')
  }
}

/** A NodePool with on-demand Linux nodes that meet the requirements; it is never disrupted. */
function pool(requirements: Requirements): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: poolName },
    spec: {
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: 'Never' },
      template: {
        spec: {
          expireAfter: 'Never',
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: className },
          requirements: [
            { key: labels.os, operator: 'In', values: ['linux'] },
            { key: labels.capacityType, operator: 'In', values: ['on-demand'] },
            ...requirements,
          ],
        },
      },
    },
  }
}

const isRefused = ({ status }: Pod) =>
  (status?.conditions ?? []).some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable')

const isReady = (pod: Pod) =>
  (pod.status?.conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True')

const isPoolReady = (each: NodePool) => conditionOf(each, 'Ready')?.status === 'True'

const isBound = ({ spec }: Pod) => (spec.nodeName ?? '') !== ''

function ignoringExisting(error: unknown): void {
  if (!isKubeError(error, 'alreadyExists')) throw error
}

function ignoringGone(error: unknown): void {
  if (!isKubeError(error, 'notFound')) throw error
}

async function inParallel<T>(list: readonly T[], work: (each: T) => Promise<unknown>): Promise<void> {
  const queue = [...list]
  const worker = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) await work(next)
  }
  await Promise.all(Array.from({ length: Math.min(parallelWrites, list.length) }, worker))
}
