/** The operator in this process, with groups enabled, on a control plane that schedules groups. */
import { conditionOf, karpenterKinds, kinds, labels, type NodeClaim, type Pod } from '@tenon/api'
import {
  createCacheRegistry,
  createEventRecorder,
  createKubeClient,
  type EventInput,
  type EventRecorder,
  type FlushableEventRecorder,
  isKubeError,
  type KubeClient,
  loadKubeConfig,
} from '@tenon/kube'
import { defaultSettings, Operator, type Settings } from '@tenon/operator'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { type LogFields, type Logger, SeededRandom, SystemClock } from '@tenon/runtime'
import { applyCrds } from '../scheduling-proof/autoscaler.ts'
import { patience } from '../patience.ts'
import { Lookout } from './lookout.ts'
import {
  foreignNode,
  type NodeParts,
  namespace,
  nodeClassName,
  pod,
  podGroup,
  podGroupKind,
  type PodParts,
  pool,
  type PoolParts,
} from './objects.ts'
import { catalogueWithDevice, StockedProvider } from './provider.ts'

const pollMs = 50
const linesShown = 60
/** As the controller's command sets it. */
const rate = { perSecond: 200, burst: 300 }

interface Parts {
  readonly clock: SystemClock
  readonly client: KubeClient
  readonly operator: Operator
  readonly provider: StockedProvider
  readonly notes: Notes
  readonly lookout: Lookout
  readonly requests: string[]
  readonly close: () => void
}

/** A gang and its pods. */
export interface GangParts extends Omit<PodParts, 'group'> {
  readonly minCount: number
  /** Default: as many as must run together. */
  readonly pods?: number
  /** Further fields of the PodGroup's spec. */
  readonly group?: Readonly<Record<string, unknown>>
}

export class GangStand {
  /** With an administrator's rights. */
  readonly client: KubeClient
  readonly operator: Operator
  readonly provider: StockedProvider
  readonly lookout: Lookout
  readonly clock: SystemClock
  /** Requests of the operator to the API server, as `METHOD path`. */
  readonly requests: readonly string[]
  readonly #notes: Notes
  readonly #close: () => void

  private constructor(parts: Parts) {
    this.client = parts.client
    this.operator = parts.operator
    this.provider = parts.provider
    this.lookout = parts.lookout
    this.clock = parts.clock
    this.requests = parts.requests
    this.#notes = parts.notes
    this.#close = parts.close
  }

  static async start(kubeconfigPath: string, settings: Partial<Settings> = {}): Promise<GangStand> {
    const clock = new SystemClock()
    const random = new SeededRandom('gangs')
    const config = loadKubeConfig({ env: {}, kubeconfig: kubeconfigPath, clock })
    const { transport } = config
    const requests: string[] = []
    const onRequest = ({ method, path }: { readonly method: string; readonly path: string }) => {
      requests.push(`${method} ${path}`)
    }
    const client = createKubeClient({ transport, clock, userAgent: 'gangs', rate, onRequest })
    const administrator = createKubeClient({ transport, clock, userAgent: 'administrator' })
    await applyCrds(administrator, clock)
    const logger = new Notes(clock)
    logger.recorder = createEventRecorder({ client, clock, logger, random })
    const provider = new StockedProvider({
      client,
      runtime: { clock, random, logger },
      instanceTypes: catalogueWithDevice(),
    })
    const operator = new Operator({
      kubernetes: {
        client,
        registry: createCacheRegistry({ client, clock, logger, random }),
        events: logger,
      },
      runtime: { clock, random, logger },
      provider,
      settings: {
        ...defaultSettings,
        batchIdleMs: 500,
        batchMaxMs: 3000,
        pendingRetryMs: 2000,
        validationDelayMs: 2000,
        disruptionPollMs: 2000,
        featureGates: { ...defaultSettings.featureGates, groupScheduling: true },
        ...settings,
      },
    })
    await operator.observe(AbortSignal.timeout(20_000))
    operator.lead()
    await administrator.create(kwokNodeClassKind, {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: nodeClassName },
      spec: {},
    })
    const lookout = Lookout.start(administrator, clock, logger)
    return new GangStand({
      clock,
      client: administrator,
      operator,
      provider,
      notes: logger,
      lookout,
      requests,
      close: () => {
        lookout.stop()
        config.close()
      },
    })
  }

  async stop(): Promise<void> {
    await this.operator.stop()
    // Otherwise pending writes are retried for hours after the API server has stopped.
    await this.#notes.recorder?.flush()
    this.#close()
  }

  /** Waits until `probe` returns anything but undefined or false, {@link patience} times `seconds` at most. */
  async until<T>(what: string, seconds: number, probe: () => T | undefined | false): Promise<T> {
    const deadline = this.clock.monotonic() + seconds * patience * 1000
    for (;;) {
      const value = probe()
      if (value !== undefined && value !== false) return value
      if (this.clock.monotonic() > deadline)
        throw new Error(
          `not within ${seconds * patience} s: ${what}\n${this.#notes.last(linesShown).join('\n')}`,
        )
      await this.clock.sleep(pollMs)
    }
  }

  /** Creates a NodePool, and waits until it is ready. */
  async pool(name: string, parts: PoolParts = {}): Promise<void> {
    await this.client.create(karpenterKinds.nodePool, pool(name, parts))
    await this.until(`NodePool ${name} is ready`, 20, () => {
      const made = this.operator.caches.nodePools.get({ name })
      return made !== undefined && conditionOf(made, 'Ready')?.status === 'True'
    })
  }

  /** Creates a Ready Node that no NodePool launched. */
  async node(name: string, parts: NodeParts): Promise<void> {
    await this.client.create(kinds.node, foreignNode(name, parts))
    await this.until(`Node ${name} is Ready`, 20, () =>
      this.operator.caches.nodes
        .get({ name })
        ?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True'),
    )
  }

  async group(name: string, minCount: number, more: Readonly<Record<string, unknown>> = {}): Promise<void> {
    await this.client.create(podGroupKind, podGroup(name, minCount, more))
  }

  /** Creates pods `NAME-0` and so on. */
  async pods(name: string, count: number, parts: PodParts, from = 0): Promise<void> {
    for (let at = from; at < from + count; at++)
      await this.client.create(kinds.pod, pod(`${name}-${at}`, parts))
  }

  /** Creates a PodGroup and its pods. */
  async gang(name: string, { minCount, pods = minCount, group, ...parts }: GangParts): Promise<void> {
    await this.group(name, minCount, group)
    await this.pods(name, pods, { ...parts, group: name })
  }

  /** Deletes the pods of a gang: one that does not fit keeps the scheduler busy. */
  async end(group: string): Promise<void> {
    const own = this.lookout.pods.list().filter(({ spec }) => spec.schedulingGroup?.podGroupName === group)
    await Promise.all(own.map(({ metadata: { name } }) => this.remove(name)))
  }

  /** Deletes a pod immediately. */
  async remove(name: string): Promise<void> {
    try {
      await this.client.delete(kinds.pod, { name, namespace }, { gracePeriodSeconds: 0 })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }

  async untilBound(group: string, count: number, seconds: number): Promise<readonly Pod[]> {
    try {
      return await this.until(`${count} pods of ${group} have a node`, seconds, () => {
        const bound = this.lookout.boundOf(group)
        return bound.length >= count && bound
      })
    } catch (error) {
      throw new Error(this.#wordsOn(group), { cause: error })
    }
  }

  /** The scheduler's messages about the pods of a group, and the state of its NodeClaims. */
  #wordsOn(group: string): string {
    const pods = this.lookout.pods.list().filter(({ spec }) => spec.schedulingGroup?.podGroupName === group)
    const words = pods.map(({ metadata, spec, status }) => {
      const said = status?.conditions?.find(({ type }) => type === 'PodScheduled')
      return `${metadata.name} ${spec.nodeName ?? said?.message ?? 'nothing is said of it'}`
    })
    const claims = Array.from(this.lookout.claims)
      .filter(([, { groups }]) => groups.includes(group))
      .map(([name, life]) => `${name} ${JSON.stringify(life)}`)
    const nodes =
      this.lookout.claims.size === 0 ? [] : this.#nodesOf(claims.map((text) => text.split(' ')[0] ?? ''))
    return [...words, ...claims, ...nodes].join('\n')
  }

  #nodesOf(claims: readonly string[]): readonly string[] {
    return this.operator.caches.nodes
      .list()
      .filter(({ metadata }) => claims.some((claim) => metadata.name.includes(claim)))
      .map(({ metadata, spec }) => `${metadata.name} ${JSON.stringify(spec?.taints ?? [])}`)
  }

  /** Waits for an event that a NodeClaim of the NodePool is not disrupted for these reasons. */
  async untilBlocked(nodePool: string, facts: string, seconds: number): Promise<void> {
    const told = () =>
      this.liveClaims(nodePool).flatMap(({ metadata }) => this.events('DisruptionBlocked', metadata.name))
    try {
      await this.until(`the nodes of ${nodePool} stay: ${facts}`, seconds, () =>
        told().some((message) => message.includes(facts)),
      )
    } catch (error) {
      const passes = Math.max(...Object.values(this.operator.blockage().passAgesSeconds), 0)
      throw new Error(
        `told of ${nodePool}: ${[...new Set(told())].join('\n')}\n${JSON.stringify(this.operator.blockage())} ${passes}`,
        { cause: error },
      )
    }
  }

  /** NodeClaims of a NodePool that are not being deleted. */
  liveClaims(nodePool: string): readonly NodeClaim[] {
    return this.operator.caches.nodeClaims
      .list()
      .filter(
        ({ metadata }) =>
          metadata.labels?.[labels.nodePool] === nodePool && metadata.deletionTimestamp === undefined,
      )
  }

  /** Messages of events with a reason about an object. */
  events(reason: string, name: string): readonly string[] {
    return this.#notes.events
      .filter((event) => event.reason === reason && event.object.metadata.name === name)
      .map(({ message }) => message)
  }

  untilEvent(reason: string, name: string, words: RegExp, seconds: number): Promise<string> {
    return this.until(`event ${reason} of ${name} says ${words}`, seconds, () =>
      this.events(reason, name).find((message) => words.test(message)),
    )
  }
}

/** Records log and events of the operator. */
class Notes implements Logger, EventRecorder {
  readonly events: EventInput[] = []
  readonly lines: string[] = []
  recorder: FlushableEventRecorder | undefined
  readonly #clock: SystemClock

  constructor(clock: SystemClock) {
    this.#clock = clock
  }

  record(event: EventInput): void {
    this.events.push(event)
    this.recorder?.record(event)
    this.#line(
      'event',
      `${event.object.kind}/${event.object.metadata.name} ${event.reason}: ${event.message}`,
    )
  }

  /** The last lines that may explain a failure. */
  last(count: number): readonly string[] {
    return this.lines.filter((line) => !line.includes('DisruptionBlocked')).slice(-count)
  }

  debug(): void {
    // Debug lines are dropped.
  }

  info(message: string, fields?: LogFields): void {
    this.#line('info', message, fields)
  }

  warn(message: string, fields?: LogFields): void {
    this.#line('warn', message, fields)
  }

  error(message: string, fields?: LogFields): void {
    this.#line('error', message, fields)
  }

  with(): Logger {
    return this
  }

  #line(level: string, message: string, fields: LogFields = {}): void {
    const text = JSON.stringify(fields, (_, value: unknown) =>
      value instanceof Error ? value.message : value,
    )
    this.lines.push(`${(this.#clock.monotonic() / 1000).toFixed(2)} ${level} ${message} ${text}`)
  }
}
