/** The operator in this process on a real control plane, with what it planned kept for judging. */
import { karpenterKinds, kinds, labels, type NodeClaim, type NodePool, type Pod } from '@tenon/api'
import {
  createCacheRegistry,
  createKubeClient,
  type EventInput,
  isKubeError,
  type KubeClient,
  loadKubeConfig,
} from '@tenon/kube'
import { defaultSettings, Operator, type Settings, ThreadDecider } from '@tenon/operator'
import { KwokProvider, kwokNodeClassKind } from '@tenon/provider-kwok'
import { eventLoopTurns, type LogFields, type Logger, SeededRandom, SystemClock } from '@tenon/runtime'
import { applyCrds } from '../scheduling-proof/autoscaler.ts'
import { deployment, proofKinds } from '../scheduling-proof/objects.ts'

const pollMs = 50
const clearingMs = 60_000
const preparingMs = 60_000
const parallelWrites = 16
const poolName = 'planned'
const className = 'planned-placement'
/** What the controller's command sets for its client. */
const rate = { perSecond: 200, burst: 300 }

export type Requirements = NonNullable<NodePool['spec']['template']['spec']['requirements']>

/** Pods of one Deployment. */
export interface Group {
  readonly name: string
  readonly replicas: number
  readonly cpu: string
  readonly memory: string
}

export interface Outcome {
  readonly pods: number
  readonly bound: number
  readonly wherePlanned: number
  readonly nodes: number
  /** NodeClaims of each decision that launched some. */
  readonly launches: readonly number[]
  readonly pricePerHour: number
  /** Longest time from a Node's appearance to its registration. */
  readonly slowestRegistrationMs: number
  readonly seconds: number
  readonly nominations: number
  readonly complaints: readonly string[]
}

/** One operator with the provider `kwok`. */
export class Stand {
  readonly #clock: SystemClock
  readonly #client: KubeClient
  readonly #operator: Operator
  readonly #notes: Notes
  readonly #close: () => void
  readonly #appearedAt = new Map<string, number>()
  readonly #registeredAt = new Map<string, number>()

  private constructor(parts: {
    readonly clock: SystemClock
    readonly client: KubeClient
    readonly operator: Operator
    readonly notes: Notes
    readonly close: () => void
  }) {
    this.#clock = parts.clock
    this.#client = parts.client
    this.#operator = parts.operator
    this.#notes = parts.notes
    this.#close = parts.close
    this.#operator.caches.nodes.onChange(({ kind, object: { metadata } }) => {
      const now = this.#clock.monotonic()
      if (kind === 'added') this.#appearedAt.set(metadata.name, now)
      if (metadata.labels?.[labels.registered] === 'true' && !this.#registeredAt.has(metadata.name))
        this.#registeredAt.set(metadata.name, now)
    })
  }

  static async start(kubeconfigPath: string, settings: Partial<Settings> = {}): Promise<Stand> {
    const clock = new SystemClock()
    const random = new SeededRandom('planned-placement')
    const notes = new Notes(clock)
    const config = loadKubeConfig({ env: {}, kubeconfig: kubeconfigPath, clock })
    const client = createKubeClient({
      transport: config.transport,
      clock,
      userAgent: 'planned-placement',
      rate,
    })
    await applyCrds(client, clock)
    const logger = notes
    const operator = new Operator({
      client,
      registry: createCacheRegistry({ client, clock, logger, random }),
      provider: new KwokProvider({ client, clock, random, logger }),
      events: notes,
      decider: new ThreadDecider({ clock, turns: eventLoopTurns, logger }),
      clock,
      random,
      logger,
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
    await client.create(kwokNodeClassKind, nodeClass).catch(ignoringExisting)
    return new Stand({ clock, client, operator, notes, close: () => config.close() })
  }

  /**
   * Creates the groups as Deployments. Once the scheduler has refused every pod, lets nodes be launched, and
   * tells what stood when all pods were bound or `withinMs` had passed.
   */
  async play(groups: readonly Group[], requirements: Requirements, withinMs: number): Promise<Outcome> {
    const { pods, nodes, nodeClaims } = this.#operator.caches
    const total = groups.reduce((sum, { replicas }) => sum + replicas, 0)
    for (const { name, replicas, cpu, memory } of groups) {
      const { type, object } = deployment(replicas, { namespace: 'default', name, requests: { cpu, memory } })
      await this.#client.create(type, object)
    }
    const patienceEnds = this.#clock.monotonic() + preparingMs
    while (!(pods.size === total && pods.list().every(isRefused)) && this.#clock.monotonic() < patienceEnds)
      await this.#clock.sleep(pollMs)
    const start = this.#clock.monotonic()
    await this.#client.create(karpenterKinds.nodePool, pool(requirements))
    const isDone = () => pods.size === total && pods.list().every(isBound)
    while (!isDone() && this.#clock.monotonic() - start < withinMs) await this.#clock.sleep(pollMs)
    const seconds = (this.#clock.monotonic() - start) / 1000
    // A pass that was under way may still launch.
    await this.#clock.sleep(3000)
    const claimOf = new Map(
      nodeClaims.list().map(({ metadata, status }) => [status?.nodeName, metadata.name]),
    )
    const bound = pods.list().filter(isBound)
    return {
      pods: total,
      bound: bound.length,
      wherePlanned: bound.filter(
        ({ metadata, spec }) => claimOf.get(spec.nodeName) === this.#notes.plan.get(metadata.uid ?? ''),
      ).length,
      nodes: nodes.size,
      launches: [...this.#notes.launches],
      pricePerHour: await this.#price(nodeClaims.list()),
      slowestRegistrationMs: Math.max(
        ...nodes.list().map(({ metadata: { name } }) => {
          const registered = this.#registeredAt.get(name) ?? Number.POSITIVE_INFINITY
          return registered - (this.#appearedAt.get(name) ?? 0)
        }),
      ),
      seconds,
      nominations: await this.#made(),
      complaints: [...this.#notes.complaints],
    }
  }

  /** What the operator logged, for a failure's report. */
  get log(): readonly string[] {
    return this.#notes.lines
  }

  /** Removes everything that {@link play} made. */
  async clear(groups: readonly Group[]): Promise<void> {
    const { pods, nodes, nodeClaims, nodePools } = this.#operator.caches
    const background = { propagationPolicy: 'Background' } as const
    await this.#client.delete(karpenterKinds.nodePool, { name: poolName }, background).catch(ignoringGone)
    for (const { name } of groups) {
      const key = { name, namespace: 'default' }
      await this.#client.delete(proofKinds.deployment, key, background).catch(ignoringGone)
    }
    const isOver = () => [pods, nodes, nodeClaims, nodePools].every(({ size }) => size === 0)
    const until = this.#clock.monotonic() + clearingMs
    while (!isOver() && this.#clock.monotonic() < until) {
      await inParallel(nodeClaims.list(), ({ metadata: { name } }) =>
        this.#drop(karpenterKinds.nodeClaim, name),
      )
      await inParallel(nodes.list(), ({ metadata: { name } }) => this.#drop(kinds.node, name))
      await inParallel(pods.list(), ({ metadata: { name, namespace = '' } }) =>
        this.#client.delete(kinds.pod, { name, namespace }, { gracePeriodSeconds: 0 }).catch(ignoringGone),
      )
      await this.#clock.sleep(1000)
    }
    this.#notes.forget()
  }

  async stop(): Promise<void> {
    await this.#operator.stop()
    this.#close()
  }

  async #drop(type: typeof kinds.node | typeof karpenterKinds.nodeClaim, name: string): Promise<void> {
    await this.#client.delete(type, { name }).catch(ignoringGone)
    await this.#client
      .patch<never>(type as never, { name }, { metadata: { finalizers: null } })
      .catch(ignoringGone)
  }

  /** What the launched types cost on demand. */
  async #price(claims: readonly NodeClaim[]): Promise<number> {
    const types = await new KwokProvider({
      client: this.#client,
      clock: this.#clock,
      random: new SeededRandom('prices'),
      logger: this.#notes,
    }).getInstanceTypes()
    const prices = new Map(
      types.map(({ name, offerings }) => [
        name,
        Math.max(...offerings.map(({ pricePerHour }) => pricePerHour)),
      ]),
    )
    return claims
      .map(({ metadata }) => prices.get(metadata.labels?.[labels.instanceType] ?? '') ?? Number.NaN)
      .reduce((sum, price) => sum + price, 0)
  }

  async #made(): Promise<number> {
    const metric = this.#operator.metrics.registry.getSingleMetric('karpenter_pods_nominations_total')
    return ((await metric?.get())?.values ?? []).reduce((sum, { value }) => sum + value, 0)
  }
}

/** Takes log and events of the operator. */
class Notes implements Logger {
  /** Where each pod was first meant to go: pod UID to NodeClaim. */
  readonly plan = new Map<string, string>()
  launches: number[] = []
  complaints: string[] = []
  lines: string[] = []
  readonly #clock: SystemClock

  constructor(clock: SystemClock) {
    this.#clock = clock
  }

  forget(): void {
    this.lines = []
    this.plan.clear()
    this.launches = []
    this.complaints = []
  }

  record({ object, reason, message }: EventInput): void {
    const claim = reason === 'Nominated' ? /nodeclaim\/([^,\s]+)/.exec(message)?.[1] : undefined
    const uid = object.metadata.uid ?? ''
    if (claim !== undefined && !this.plan.has(uid)) this.plan.set(uid, claim)
  }

  debug(): void {
    // Not of interest.
  }

  info(message: string, fields?: LogFields): void {
    this.#line(message, fields)
    if (message === 'computed new nodeclaim(s) to fit pod(s)')
      this.launches.push(Number(fields?.['nodeclaims'] ?? 0))
  }

  warn(message: string, fields?: LogFields): void {
    this.#line(message, fields)
    this.complaints.push(`${message}: ${textOf(fields)}`)
  }

  error(message: string, fields?: LogFields): void {
    this.#line(message, fields)
    this.complaints.push(`${message}: ${textOf(fields)}`)
  }

  with(): Logger {
    return this
  }

  #line(message: string, fields?: LogFields): void {
    this.lines.push(`${(this.#clock.monotonic() / 1000).toFixed(2)} ${message} ${textOf(fields)}`)
  }
}

/** Launches on-demand Linux nodes that meet the requirements, and keeps them. */
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

const textOf = (fields: LogFields = {}) =>
  JSON.stringify(fields, (_, value: unknown) => (value instanceof Error ? value.message : value))

const isRefused = ({ status }: Pod) =>
  (status?.conditions ?? []).some(({ type, reason }) => type === 'PodScheduled' && reason === 'Unschedulable')

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
