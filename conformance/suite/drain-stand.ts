/** The operator in this process on a real control plane, and an independent observer of drains. */
import { annotations, karpenterKinds, kinds, matchesSelector, type Pod } from '@tenon/api'
import {
  type Cache,
  createCacheRegistry,
  createEventRecorder,
  createKubeClient,
  loadKubeConfig,
} from '@tenon/kube'
import { defaultSettings, Operator, type Settings, ThreadDecider } from '@tenon/operator'
import { decorated, type RepairPolicy } from '@tenon/provider'
import { KwokProvider } from '@tenon/provider-kwok'
import { eventLoopTurns, SeededRandom, silentLogger, SystemClock, type Transport } from '@tenon/runtime'
import { applyCrds } from '../src/scheduling-proof/autoscaler.ts'

/** A request of the operator that ends a pod. */
interface EndRequest {
  readonly kind: 'evict' | 'delete'
  readonly pod: string
  readonly uid: string
  readonly atMs: number
  /** Duration in milliseconds; 0 while it is pending. */
  tookMs: number
  /** 0 while it is pending, and without a response. */
  status: number
}

const rate = { perSecond: 200, burst: 300 }
const pollMs = 100
const evictionPath = /\/namespaces\/([^/]+)\/pods\/([^/?]+)\/eviction/
const podPath = /\/namespaces\/([^/]+)\/pods\/([^/?]+)(\?|$)/

/** A watched PodDisruptionBudget, and how many of its pods must stay healthy. */
export interface WatchedBudget {
  readonly name: string
  readonly matchLabels: Readonly<Record<string, string>>
  readonly desiredHealthy: number
}

export interface StandOptions {
  readonly settings?: Partial<Settings>
  /** In place of those of the provider, which are longer than a test. */
  readonly repairPolicies?: readonly RepairPolicy[]
  /** Served besides those that every controller needs. */
  readonly crds?: readonly object[]
}

export class DrainStand {
  readonly clock: SystemClock
  readonly client: ReturnType<typeof createKubeClient>
  readonly pods: Cache<Pod>
  readonly operator: Operator
  /** Violations, as sentences. */
  readonly complaints: string[] = []
  readonly requests: EndRequest[] = []
  #deadlineMs = Number.POSITIVE_INFINITY
  #budgets: readonly WatchedBudget[] = []
  /** Pods that were deleted because of the deadline, by UID. */
  readonly #forced = new Map<string, Pod>()
  readonly #stopping = new AbortController()
  readonly #close: () => void

  private constructor(
    clock: SystemClock,
    transport: Transport,
    way: (transport: Transport) => Transport,
    { settings = {}, repairPolicies }: StandOptions,
    close: () => void,
  ) {
    this.clock = clock
    this.#close = close
    const random = new SeededRandom('drain')
    const logger = silentLogger
    this.client = createKubeClient({ transport, clock, userAgent: 'drain-test', rate })
    const own = createCacheRegistry({ client: this.client, clock, logger, random })
    this.pods = own.cache(kinds.pod)
    const budgets = own.cache(kinds.podDisruptionBudget)
    own.start(this.#stopping.signal)
    this.pods.onChange((change) => {
      if (change.kind === 'added') return
      const isLost =
        change.kind === 'deleted'
          ? isHealthy(change.object)
          : isHealthy(change.old) && !isHealthy(change.object)
      if (isLost) this.#lost(change.object)
    })
    budgets.onChange(({ object: { metadata, status } }) => {
      const { disruptionsAllowed = 0 } = status ?? {}
      if (disruptionsAllowed < 0) this.complaints.push(`${metadata.name}: ${disruptionsAllowed} allowed`)
    })
    const client = createKubeClient({
      transport: way(this.#between(transport)),
      clock,
      userAgent: 'karpenter/drain-test',
      rate,
    })
    const provider = new KwokProvider({ client, runtime: { clock, random, logger } })
    this.operator = new Operator({
      kubernetes: {
        client,
        registry: createCacheRegistry({ client, clock, logger, random }),
        events: createEventRecorder({ client, clock, logger, random }),
      },
      runtime: { clock, random, logger },
      provider: repairPolicies === undefined ? provider : decorated(provider, { repairPolicies }),
      decider: new ThreadDecider({ clock, turns: eventLoopTurns, logger }),
      settings: { ...defaultSettings, ...settings },
    })
  }

  /**
   * Installs the CRDs and leads.
   * @param way wraps the operator's connection to the API server.
   */
  static async start(
    kubeconfigPath: string,
    way = (transport: Transport): Transport => transport,
    options: StandOptions = {},
  ): Promise<DrainStand> {
    const clock = new SystemClock()
    const config = loadKubeConfig({ env: {}, kubeconfig: kubeconfigPath, clock })
    const stand = new DrainStand(clock, config.transport, way, options, () => {
      config.close()
    })
    await applyCrds(stand.client, clock, options.crds)
    await stand.operator.observe(AbortSignal.timeout(20_000))
    stand.operator.lead()
    return stand
  }

  /** From now on the budgets must hold, and pods may be deleted as the deadline allows. */
  follow(budgets: readonly WatchedBudget[], deadlineMs: number): void {
    this.#budgets = budgets
    this.#deadlineMs = deadlineMs
  }

  /** Waits for `isDone`. Returns whether it held before `untilMs` (Unix milliseconds). */
  async wait(isDone: () => boolean, untilMs: number): Promise<boolean> {
    while (!isDone()) {
      if (this.clock.now() > untilMs) return false
      await this.clock.sleep(pollMs)
    }
    return true
  }

  /** Number of evictions by status. */
  counts(): Readonly<Record<number, number>> {
    const counts: Record<number, number> = {}
    for (const { kind, status } of this.requests) {
      if (kind === 'evict') counts[status] = (counts[status] ?? 0) + 1
    }
    return counts
  }

  /** Durations of requests that end pods, in words. */
  latencies(): string {
    const tookMs = this.requests.map((request) => request.tookMs).toSorted((one, other) => one - other)
    const at = (part: number) => tookMs[Math.floor((tookMs.length - 1) * part)] ?? 0
    return `half within ${at(0.5)} ms, 99 % within ${at(0.99)} ms`
  }

  /** Evictions that were retried earlier than the back-off allows. */
  haste(): readonly string[] {
    const refusals = new Map<string, { readonly count: number; readonly atMs: number }>()
    const hasty: string[] = []
    for (const { kind, pod, uid, atMs, status } of this.requests) {
      // If the pod was gone already, it is unknown which one it was.
      if (kind !== 'evict' || uid === '') continue
      const last = refusals.get(uid)
      const pauseMs = last === undefined ? 0 : Math.min(10_000, 100 * 2 ** (last.count - 1))
      if (last !== undefined && atMs - last.atMs < pauseMs) hasty.push(`${pod} after ${atMs - last.atMs} ms`)
      if (status >= 400) refusals.set(uid, { count: (last?.count ?? 0) + 1, atMs })
    }
    return hasty
  }

  async stop(): Promise<void> {
    await this.operator.stop()
    this.#stopping.abort(new Error('the test is over'))
    this.#close()
  }

  /** Removes what the operator launched, once the workloads are gone. */
  async clear(): Promise<void> {
    const { nodeClaims, nodes } = this.operator.caches
    const patient = this.clock.now() + 60_000
    for (const { metadata } of nodeClaims.list())
      await this.client.delete(karpenterKinds.nodeClaim, { name: metadata.name }).catch(() => undefined)
    await this.wait(() => nodeClaims.size === 0 && nodes.size === 0, patient)
  }

  #between(inner: Transport): Transport {
    return {
      send: async (request, signal) => {
        const evicted = request.method === 'POST' ? evictionPath.exec(request.path) : null
        const deleted = request.method === 'DELETE' ? podPath.exec(request.path) : null
        const [, namespace = '', name = ''] = evicted ?? deleted ?? []
        if (evicted === null && deleted === null) return await inner.send(request, signal)
        const atMs = this.clock.now()
        const kind = evicted === null ? 'delete' : 'evict'
        const pod = this.pods.get({ namespace, name })
        if (pod !== undefined) this.#judge(kind, pod, atMs)
        // Recorded before it is sent: a slow server may act long before it responds.
        const asked: EndRequest = {
          kind,
          pod: name,
          uid: pod?.metadata.uid ?? '',
          atMs,
          tookMs: 0,
          status: 0,
        }
        this.requests.push(asked)
        const answer = await inner.send(request, signal)
        asked.tookMs = this.clock.now() - atMs
        asked.status = answer.status
        return answer
      },
    }
  }

  #judge(kind: EndRequest['kind'], pod: Pod, atMs: number): void {
    const { name, uid = '', annotations: notes = {}, deletionTimestamp } = pod.metadata
    const forcedMs = this.#deadlineMs - (pod.spec.terminationGracePeriodSeconds ?? 30) * 1000
    if (kind === 'delete') {
      this.#forced.set(uid, pod)
      if (atMs <= forcedMs && deletionTimestamp === undefined)
        this.complaints.push(`${name} was deleted by force ${forcedMs - atMs} ms too early`)
      return
    }
    const value = notes[annotations.doNotDisrupt] ?? ''
    if (value === 'true') this.complaints.push(`${name} was evicted although it must not be disrupted`)
    const seconds = /^(\d+)s$/.exec(value)?.[1]
    const untilMs = Date.parse(pod.status?.startTime ?? '') + Number(seconds ?? 0) * 1000
    if (seconds !== undefined && atMs < untilMs)
      this.complaints.push(`${name} was evicted ${untilMs - atMs} ms before its time`)
  }

  /**
   * A healthy pod is gone or terminating: its budgets must still have as many as they need. Pods that the
   * deadline ended count as present, as the status that evictions are judged by may lag behind.
   */
  #lost(pod: Pod): void {
    for (const { name, matchLabels, desiredHealthy } of this.#budgets) {
      const covers = (each: Pod) => matchesSelector({ matchLabels }, each.metadata.labels)
      if (!covers(pod)) continue
      const healthy = this.pods.list().filter((each) => isHealthy(each) && covers(each)).length
      const forced = [...this.#forced.values()].filter(covers).length
      if (healthy + forced < desiredHealthy)
        this.complaints.push(`${name}: ${healthy} of ${desiredHealthy} healthy without ${pod.metadata.name}`)
    }
  }
}

function isHealthy({ metadata, status }: Pod): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    (status?.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True')
  )
}
