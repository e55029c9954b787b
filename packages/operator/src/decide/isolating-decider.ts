/** Repeats a decision that fails without the objects that make it fail, so that one bad object delays nobody else. */
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
import { controllerOf, type Pod } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import { FailureBackoff } from '../state/failure-backoff.ts'
import type { DecisionFaults, FaultyPart } from './decision-faults.ts'
import type { DecisionOptions, SchedulingDecider } from './decider.ts'
import { PodError } from './pod-watch.ts'

const minute = 60_000
/** Objects set aside are tried again after a minute, then after twice as long each time. */
const backoff = { freeFailures: 0, baseMs: minute, capMs: 60 * minute, memoryMs: 6 * 60 * minute }
/** Most attempts of one decision; the search goes on with the next decision. */
const mostAttempts = 400
/** Share of the decision's time that an attempt without some objects may take. */
const attemptShare = 0.1
/** A decision with less time than this may decide about no pod without being a failure. */
const leastJudgedMs = 5000
/** After this many pods were left out because attempts failed at them, other objects are suspected. */
const mostSuspects = 10
/** Most objects of each kind that are remembered as set aside. */
const mostRemembered = 10_000

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
 * Wraps another decider. If that throws, hangs or decides about no pod in its time, it is asked again at once, without
 * improvements; then without the pods at which it failed; then without those that are new since the last successful
 * decision, and by bisection without those that make it fail. These are set aside with a reason, and tried again with a
 * growing back-off. The same for NodePools, DaemonSets and nodes, and for the candidates of consolidation.
 */
export class IsolatingDecider implements SchedulingDecider {
  readonly #options: IsolatingDeciderOptions
  readonly #failures: FailureBackoff
  /** Errors of objects that were set aside, by key. */
  readonly #problems = new Map<string, string>()
  /** UIDs of the pods of the last successful decision. */
  #good: ReadonlySet<string> = new Set()
  #isClosed = false

  constructor(options: IsolatingDeciderOptions) {
    this.#options = options
    this.#failures = new FailureBackoff(options.clock, backoff)
  }

  async decide(input: SchedulingInput, options: DecisionOptions): Promise<SchedulingResult> {
    const known = this.#withoutSetAside(input)
    const attempt = (tried: SchedulingInput, deadlineMs: number) =>
      this.#attempt('decision', options.signal, () =>
        this.#decided(tried, { deadlineMs, signal: options.signal }),
      )
    const first = await attempt(known.input, options.deadlineMs)
    if (first.kind === 'done') return this.#reported(known.input, first.value, known.failures)
    const budget = this.#budget(options)
    const again = (tried: SchedulingInput) => budget.spend(() => attempt(tried, budget.attemptMs))
    const { improvement: _, ...policy } = known.input.policy
    const plain = { ...known.input, policy }
    const second = known.input.policy.improvement === undefined ? first : await again(plain)
    if (second.kind === 'done') return this.#reported(plain, second.value, known.failures)
    const search: Search = { input: plain, error: second.error, budget, attempt: again }
    const { found, isAnyPod } = await this.#withoutSuspects(search)
    const result =
      found ??
      (isAnyPod ? await this.#withoutObjects(search) : undefined) ??
      (await this.#withoutPods(search)) ??
      (await this.#withoutObjects(search))
    if (result === undefined) throw second.error
    return this.#reported(plain, result, [...known.failures, ...result.setAside])
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

  /** @throws Error when no pod was decided about. */
  async #decided(input: SchedulingInput, options: DecisionOptions): Promise<SchedulingResult> {
    const { clock, inner } = this.#options
    const start = clock.monotonic()
    const result = await inner.decide(input, options)
    const { deadlineMs, signal } = options
    const isTimeOver = clock.monotonic() - start >= deadlineMs && !signal.aborted
    if (isTimeOver && deadlineMs >= leastJudgedMs && isNothing(result))
      throw new Error(`no pod was decided about within ${deadlineMs / 1000} s`)
    return result
  }

  /**
   * Leaves out pod after pod at which an attempt failed, where the decider says which that was; of a workload whose
   * pods are suspected twice, all of them.
   */
  async #withoutSuspects(search: Search): Promise<{ readonly found?: Found; readonly isAnyPod: boolean }> {
    const { budget, attempt } = search
    const suspects = new Map<Pod, unknown>()
    const workloads = new Set<string>()
    let { input, error } = search
    for (let round = 0; round < mostSuspects && budget.mayGoOn(); round++) {
      const pod = error instanceof PodError ? input.pods[error.pod] : undefined
      if (pod === undefined) return { isAnyPod: false }
      const workload = controllerOf(pod)?.uid
      const isKnown = workload !== undefined && workloads.has(workload)
      if (workload !== undefined) workloads.add(workload)
      for (const each of input.pods)
        if (each === pod || (isKnown && controllerOf(each)?.uid === workload)) suspects.set(each, error)
      input = { ...search.input, pods: search.input.pods.filter((each) => !suspects.has(each)) }
      const tried = await attempt(input)
      if (tried.kind === 'done')
        return { found: { ...tried.value, setAside: this.#setAsideAll(suspects) }, isAnyPod: false }
      error = tried.error
    }
    return { isAnyPod: suspects.size > 1 }
  }

  /** Finds by bisection the pods that make it fail; undefined if there are none. */
  async #withoutPods({ input, error, budget, attempt }: Search): Promise<Found | undefined> {
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
    if (base.kind === 'failed') return undefined
    const { value, culprits, left } = await isolate<Pod, SchedulingResult>({
      kept,
      suspects,
      error,
      attempt: (pods) => attempt({ ...input, pods }),
      mayGoOn: budget.mayGoOn,
    })
    const result = value ?? base.value
    return {
      ...result,
      undecided: [...result.undecided, ...left],
      setAside: this.#setAsideAll(culprits),
    }
  }

  /** Finds the NodePools, DaemonSets or nodes that make it fail; undefined if there are none. */
  async #withoutObjects({ input, error, budget, attempt }: Search): Promise<Found | undefined> {
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
      // If it fails with any of them, they are not the cause.
      if (culprits.size > 1 && culprits.size === input[list].length) continue
      for (const [item, cause] of culprits) this.#setAsideObject(list, item as Named, cause)
      return { ...(value ?? none.value), setAside: [] }
    }
    return undefined
  }

  async #consolidation(
    input: SchedulingInput,
    question: ConsolidationQuestion,
    options: DecisionOptions,
  ): Promise<DisruptionResult | undefined> {
    const { inner } = this.#options
    const isHealthy = ({ node }: CandidateInput) => !this.#isSetAside(`Node/${node}`)
    // Questions about the same list share work.
    const healthy = question.candidates.every(isHealthy)
      ? question.candidates
      : question.candidates.filter(isHealthy)
    const ask = (
      asked: ConsolidationQuestion,
      candidates: readonly CandidateInput[],
      deadlineMs: number,
    ): Promise<Attempt<DisruptionResult | undefined>> =>
      this.#attempt('disruption', options.signal, () =>
        inner.examine(
          withPodsOfOnly(input, question.candidates, candidates),
          { ...asked, candidates },
          { deadlineMs, signal: options.signal },
        ),
      )
    const first = await ask(question, healthy, options.deadlineMs)
    if (first.kind === 'done') return first.value
    const budget = this.#budget(options)
    const { improvement: _, ...plain } = question
    const again = await ask(plain, healthy, budget.attemptMs)
    if (again.kind === 'done') return again.value
    const none = await ask(plain, [], budget.attemptMs)
    if (none.kind === 'failed') throw again.error
    const { value, culprits, left } = await isolate<CandidateInput, DisruptionResult | undefined>({
      kept: [],
      suspects: healthy,
      error: again.error,
      attempt: (candidates) => budget.spend(() => ask(plain, candidates, budget.attemptMs)),
      mayGoOn: budget.mayGoOn,
    })
    for (const [{ node }, cause] of culprits) this.#leaveNode(node, cause)
    const result = value ?? none.value
    return left.length === 0 ? result : asTimedOut(result)
  }

  /** The result, with failures of the pods that were left out. */
  #reported(
    input: SchedulingInput,
    result: SchedulingResult,
    failures: readonly Failure[],
  ): SchedulingResult {
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

  /** The input without objects that are set aside, and failures for the pods among them. */
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

  #setAsideAll(culprits: ReadonlyMap<Pod, unknown>): readonly Failure[] {
    return Array.from(culprits, ([pod, error]) => {
      const { name, namespace } = pod.metadata
      const key = podKey(pod)
      this.#note(key, { Pod: { name, namespace } }, error)
      return this.#failureOf(key, pod)
    })
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
    if (this.#problems.size >= mostRemembered) this.#problems.clear()
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

  /** Time for the search for the cause: as much again as for the failed decision. */
  #budget({ deadlineMs, signal }: DecisionOptions): Budget {
    const { clock } = this.#options
    const attemptMs = Math.max(1, deadlineMs * attemptShare)
    let attempts = 0
    let spentMs = 0
    return {
      attemptMs,
      mayGoOn: () => !signal.aborted && spentMs < deadlineMs && attempts++ < mostAttempts,
      spend: async (run) => {
        const start = clock.monotonic()
        const outcome = await run()
        // The time to end an attempt that hangs does not count.
        spentMs += Math.min(attemptMs, clock.monotonic() - start)
        return outcome
      },
    }
  }
}

interface Budget {
  /** Deadline of one attempt. */
  readonly attemptMs: number
  readonly mayGoOn: () => boolean
  readonly spend: <T>(run: () => Promise<T>) => Promise<T>
}

/** A failed decision, and the means to repeat it. */
interface Search {
  readonly input: SchedulingInput
  readonly error: unknown
  readonly budget: Budget
  readonly attempt: (input: SchedulingInput) => Promise<Attempt<SchedulingResult>>
}

/** A decision without the objects that make it fail; `setAside` are failures of pods among them. */
interface Found extends SchedulingResult {
  readonly setAside: readonly Failure[]
}

function isNothing({ claims, deferred, placements, failures, undecided }: SchedulingResult): boolean {
  return undecided.length > 0 && claims.length + deferred.length + placements.length + failures.length === 0
}

type Named = PoolInput | { readonly name: string }

const podKey = ({ metadata }: Pod) => `Pod/${metadata.uid ?? metadata.name}`

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Removes the pods of candidates that are left out: they stay where they are. */
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

/** Outcome of an attempt: its value or its error. */
type Attempt<R> =
  | { readonly kind: 'done'; readonly value: R }
  | { readonly kind: 'failed'; readonly error: unknown }

interface Isolation<T, R> {
  /** Of the attempt with all items that take part; undefined when there was none beside that of the caller. */
  readonly value: R | undefined
  /** Items without which the attempt succeeds, each with what it fails with. */
  readonly culprits: ReadonlyMap<T, unknown>
  /** Items that were not judged when there was no more time. */
  readonly left: readonly T[]
}

interface Suspicion<T, R> {
  /** Items with which alone an attempt succeeds. */
  readonly kept: readonly T[]
  /** Items of which at least one makes the attempt fail when all take part. */
  readonly suspects: readonly T[]
  /** What the attempt with all of them failed with. */
  readonly error: unknown
  readonly attempt: (items: readonly T[]) => Promise<Attempt<R>>
  readonly mayGoOn: () => boolean
}

/** Takes about twice the logarithm of the number of suspects in attempts, for each culprit. */
async function isolate<T, R>(suspicion: Suspicion<T, R>): Promise<Isolation<T, R>> {
  const { suspects, attempt, mayGoOn } = suspicion
  const culprits = new Map<T, unknown>()
  const left: T[] = []
  let kept = suspicion.kept
  let value: R | undefined
  const failing: { readonly group: readonly T[]; readonly error: unknown }[] = []
  const judge = async (group: readonly T[]): Promise<void> => {
    if (!mayGoOn()) {
      left.push(...group)
      return
    }
    const items = [...kept, ...group]
    const tried = await attempt(items)
    if (tried.kind === 'failed') failing.push({ group, error: tried.error })
    else {
      kept = items
      value = tried.value
    }
  }
  failing.push({ group: suspects, error: suspicion.error })
  for (let next = failing.pop(); next !== undefined; next = failing.pop()) {
    const { group, error } = next
    const [only] = group
    if (group.length === 1 && only !== undefined) {
      culprits.set(only, error)
      continue
    }
    const middle = group.length >> 1
    await judge(group.slice(0, middle))
    await judge(group.slice(middle))
  }
  return { value, culprits, left }
}
