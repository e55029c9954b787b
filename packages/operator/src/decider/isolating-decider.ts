/** A decision that throws is made again without what makes it throw, so that one bad object holds up nobody. */
import type {
  CandidateInput,
  ConsolidationQuestion,
  DisruptionQuestion,
  DisruptionResult,
  Failure,
  PoolInput,
  SchedulingInput,
  SchedulingResult,
} from '@tenon/engine'
import type { Pod } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import { FailureBackoff } from '../cluster/failure-backoff.ts'
import type { DecisionFaults, FaultyPart } from './decision-faults.ts'
import { type DecisionOptions, type SchedulingDecider } from './decider.ts'
import { type Attempt, isolate } from './isolate.ts'

const minute = 60_000
/** What was set aside is tried again after a minute, then after twice as long each time. */
const backoff = { freeFailures: 0, baseMs: minute, capMs: 60 * minute, memoryMs: 6 * 60 * minute }
/** Attempts of one decision; what was not judged by then is judged with the next. */
const mostAttempts = 400
/** Objects of each kind that are remembered as set aside. */
const mostTold = 10_000

export interface IsolatingDeciderOptions {
  readonly inner: SchedulingDecider
  readonly clock: Pick<Clock, 'monotonic'>
  readonly logger: Logger
  readonly events: Pick<EventRecorder, 'record'>
  readonly faults: DecisionFaults
}

const report = 'This is a bug: please report it with the log of the controller'

type ObjectList = 'pools' | 'daemons' | 'nodes'

/**
 * Asks another decider. When that throws it asks again at once, without improvements; then without the pods that are
 * new since the last decision that succeeded, and by halving finds those that make it throw. They are set aside with
 * a reason, and tried again after a while that grows. The same for NodePools, DaemonSets and nodes, and for the
 * candidates of a search for consolidation.
 */
export class IsolatingDecider implements SchedulingDecider {
  readonly #options: IsolatingDeciderOptions
  readonly #failures: FailureBackoff
  /** By key, what each object that was set aside failed with. */
  readonly #problems = new Map<string, string>()
  /** UIDs of the pods of the last decision that succeeded. */
  #good: ReadonlySet<string> = new Set()
  #isClosed = false

  constructor(options: IsolatingDeciderOptions) {
    this.#options = options
    this.#failures = new FailureBackoff(options.clock, backoff)
  }

  async decide(input: SchedulingInput, options: DecisionOptions): Promise<SchedulingResult> {
    const known = this.#withoutSetAside(input)
    const budget = this.#budget(options)
    const attempt = (tried: SchedulingInput) =>
      this.#attempt('decision', options.signal, () =>
        this.#options.inner.decide(tried, { deadlineMs: budget.leftMs(), signal: options.signal }),
      )
    const first = await attempt(known.input)
    if (first.kind === 'done') return this.#told(known.input, first.value, known.failures)
    const { improvement: _, ...policy } = known.input.policy
    const plain = { ...known.input, policy }
    const again = known.input.policy.improvement === undefined ? first : await attempt(plain)
    if (again.kind === 'done') return this.#told(plain, again.value, known.failures)
    return await this.#isolated(plain, again.error, known.failures, budget, attempt)
  }

  async examine(
    input: SchedulingInput,
    question: DisruptionQuestion,
    options: DecisionOptions,
  ): Promise<DisruptionResult | undefined> {
    const { inner } = this.#options
    const { input: known } = this.#withoutSetAside(input)
    if (question.kind === 'remove') {
      const tried = await this.#attempt('disruption', options.signal, () =>
        inner.examine(known, question, options),
      )
      if (tried.kind === 'done') return tried.value
      throw tried.error
    }
    return await this.#consolidation(known, question, options)
  }

  close(): Promise<void> {
    this.#isClosed = true
    return this.#options.inner.close()
  }

  /** @param error what the decision about all of it failed with. */
  async #isolated(
    input: SchedulingInput,
    error: unknown,
    failures: readonly Failure[],
    budget: Budget,
    attempt: (input: SchedulingInput) => Promise<Attempt<SchedulingResult>>,
  ): Promise<SchedulingResult> {
    const fresh = input.pods.filter(({ metadata }) => !this.#good.has(metadata.uid ?? ''))
    const old = input.pods.filter(({ metadata }) => this.#good.has(metadata.uid ?? ''))
    let kept: readonly Pod[] = fresh.length === 0 ? [] : old
    let suspects: readonly Pod[] = fresh.length === 0 ? old : fresh
    let base = await attempt({ ...input, pods: kept })
    if (base.kind === 'failed' && kept.length > 0) {
      suspects = input.pods
      kept = []
      base = await attempt({ ...input, pods: kept })
    }
    if (base.kind === 'failed') return await this.#withoutObjects(input, error, failures, budget, attempt)
    const { value, culprits, left } = await isolate<Pod, SchedulingResult>({
      kept,
      suspects,
      error,
      attempt: (pods) => attempt({ ...input, pods }),
      mayGoOn: budget.mayGoOn,
    })
    const setAside = Array.from(culprits, ([pod, cause]) => this.#setAside(pod, cause))
    const result = value ?? base.value
    const undecided = [...result.undecided, ...left]
    return this.#told(input, { ...result, undecided }, [...failures, ...setAside])
  }

  /** No pod is to blame: looks for the NodePool, the DaemonSet or the node that is. */
  async #withoutObjects(
    input: SchedulingInput,
    error: unknown,
    failures: readonly Failure[],
    budget: Budget,
    attempt: (input: SchedulingInput) => Promise<Attempt<SchedulingResult>>,
  ): Promise<SchedulingResult> {
    for (const list of ['pools', 'daemons', 'nodes'] as const) {
      const none = await attempt({ ...input, [list]: [] })
      if (none.kind === 'failed') continue
      const { value, culprits } = await isolate<unknown, SchedulingResult>({
        kept: [],
        suspects: input[list],
        error,
        attempt: (items) => attempt({ ...input, [list]: items }),
        mayGoOn: budget.mayGoOn,
      })
      for (const [item, cause] of culprits) this.#setAsideObject(list, item as Named, cause)
      return this.#told(input, value ?? none.value, failures)
    }
    throw error
  }

  async #consolidation(
    input: SchedulingInput,
    question: ConsolidationQuestion,
    options: DecisionOptions,
  ): Promise<DisruptionResult | undefined> {
    const { inner } = this.#options
    const budget = this.#budget(options)
    const isHealthy = ({ node }: CandidateInput) => !this.#isSetAside(`Node/${node}`)
    // Questions about the same list share work.
    const healthy = question.candidates.every(isHealthy)
      ? question.candidates
      : question.candidates.filter(isHealthy)
    const ask = (asked: ConsolidationQuestion, candidates: readonly CandidateInput[]) =>
      this.#attempt('disruption', options.signal, () =>
        inner.examine(
          withPodsOfOnly(input, question.candidates, candidates),
          { ...asked, candidates },
          { deadlineMs: budget.leftMs(), signal: options.signal },
        ),
      )
    const first = await ask(question, healthy)
    if (first.kind === 'done') return first.value
    const { improvement: _, ...plain } = question
    const again = await ask(plain, healthy)
    if (again.kind === 'done') return again.value
    const none = await ask(plain, [])
    if (none.kind === 'failed') throw again.error
    const { value, culprits, left } = await isolate<CandidateInput, DisruptionResult | undefined>({
      kept: [],
      suspects: healthy,
      error: again.error,
      attempt: (candidates) => ask(plain, candidates),
      mayGoOn: budget.mayGoOn,
    })
    for (const [{ node }, cause] of culprits) this.#leaveNode(node, cause)
    const result = value ?? none.value
    return left.length === 0 ? result : asTimedOut(result)
  }

  /** The decision with what it was made without. */
  #told(input: SchedulingInput, result: SchedulingResult, failures: readonly Failure[]): SchedulingResult {
    for (const fault of result.faults) this.#options.faults.note(fault.part, fault)
    const left = new Set([...result.undecided, ...failures.map(({ pod }) => pod)])
    this.#good = new Set(input.pods.filter((pod) => !left.has(pod)).map(({ metadata }) => metadata.uid ?? ''))
    return failures.length === 0 ? result : { ...result, failures: [...result.failures, ...failures] }
  }

  async #attempt<R>(part: FaultyPart, signal: AbortSignal, run: () => Promise<R>): Promise<Attempt<R>> {
    try {
      return { kind: 'done', value: await run() }
    } catch (error) {
      if (signal.aborted || this.#isClosed) throw error
      this.#options.faults.note(part, error)
      return { kind: 'failed', error }
    }
  }

  /** The input less what is set aside, and the pods among that. */
  #withoutSetAside(input: SchedulingInput): {
    readonly input: SchedulingInput
    readonly failures: readonly Failure[]
  } {
    if (this.#problems.size === 0) return { input, failures: [] }
    const failures = input.pods.flatMap((pod): readonly Failure[] => {
      const key = podKey(pod)
      return this.#isSetAside(key) ? [this.#failureOf(key, pod)] : []
    })
    const left = new Set(failures.map(({ pod }) => pod))
    const staying = <T>(kind: string, items: readonly T[], nameOf: (item: T) => string) =>
      items.filter((item) => !this.#isSetAside(`${kind}/${nameOf(item)}`))
    return {
      input: {
        ...input,
        pods: input.pods.filter((pod) => !left.has(pod)),
        pools: staying('NodePool', input.pools, ({ nodePool }) => nodePool.metadata.name),
        daemons: staying('DaemonSet', input.daemons, ({ name }) => name),
        nodes: staying('StateNode', input.nodes, ({ name }) => name),
      },
      failures,
    }
  }

  #isSetAside(key: string): boolean {
    return this.#problems.has(key) && this.#failures.leftMs(key) > 0
  }

  #setAside(pod: Pod, error: unknown): Failure {
    const { name, namespace } = pod.metadata
    const key = podKey(pod)
    this.#note(key, { Pod: { name, namespace } }, error)
    return this.#failureOf(key, pod)
  }

  #setAsideObject(list: ObjectList, item: Named, error: unknown): void {
    const kind = { pools: 'NodePool', daemons: 'DaemonSet', nodes: 'StateNode' }[list]
    const pool = 'nodePool' in item ? item.nodePool : undefined
    const name = 'nodePool' in item ? item.nodePool.metadata.name : item.name
    const key = `${kind}/${name}`
    this.#note(key, { [kind]: { name } }, error)
    if (pool === undefined) return
    this.#options.events.record({
      object: pool,
      type: 'Warning',
      reason: 'DecisionFailed',
      message: `Every decision with this NodePool fails (${this.#problems.get(key) ?? ''}), so it launches nothing for a while; other NodePools are not affected. ${report}`,
      dedupe: [pool.metadata.uid ?? name],
    })
  }

  #leaveNode(name: string, error: unknown): void {
    const key = `Node/${name}`
    this.#note(key, { Node: { name } }, error)
    this.#options.events.record({
      object: { apiVersion: 'v1', kind: 'Node', metadata: { name } },
      type: 'Warning',
      reason: 'DecisionFailed',
      message: `Every search for consolidation with this node fails (${this.#problems.get(key) ?? ''}), so it is ignored for a while; other nodes are not affected. ${report}`,
      dedupe: [name],
    })
  }

  #note(key: string, object: Readonly<Record<string, unknown>>, error: unknown): void {
    if (this.#problems.size >= mostTold) this.#problems.clear()
    this.#problems.set(key, textOf(error))
    this.#failures.note([key])
    this.#options.logger.error('ignoring an object that makes every decision fail', {
      ...object,
      problem: textOf(error),
      seconds: Math.round(this.#failures.leftMs(key) / 1000),
    })
  }

  #failureOf(key: string, pod: Pod): Failure {
    return { pod, reason: { kind: 'undecidable', problem: this.#problems.get(key) ?? 'unknown' } }
  }

  #budget({ deadlineMs, signal }: DecisionOptions): Budget {
    const { clock } = this.#options
    const end = clock.monotonic() + deadlineMs
    let attempts = 0
    return {
      leftMs: () => Math.max(1, end - clock.monotonic()),
      mayGoOn: () => !signal.aborted && clock.monotonic() < end && attempts++ < mostAttempts,
    }
  }
}

interface Budget {
  readonly leftMs: () => number
  readonly mayGoOn: () => boolean
}

type Named = PoolInput | { readonly name: string }

const podKey = ({ metadata }: Pod) => `Pod/${metadata.uid ?? metadata.name}`

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Pods of the candidates that are left out stay where they are, and are none to find a place for. */
function withPodsOfOnly(
  input: SchedulingInput,
  all: ConsolidationQuestion['candidates'],
  some: ConsolidationQuestion['candidates'],
): SchedulingInput {
  if (some.length === all.length) return input
  const asked = new Set(some)
  const others = new Set(all.filter((each) => !asked.has(each)).flatMap(({ pods }) => pods))
  return { ...input, pods: input.pods.filter(({ metadata }) => !others.has(metadata.uid ?? '')) }
}

function asTimedOut(result: DisruptionResult | undefined): DisruptionResult | undefined {
  if (result?.kind !== 'consolidation') return result
  return { ...result, isTimedOut: true }
}
