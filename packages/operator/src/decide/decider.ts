/**
 * A decision, step by step: it is timed ({@link PassDecider}), answered from the last one if nothing has changed, repeated
 * without what makes it fail (isolating-decider.ts), and made by the engine, in a thread (thread-decider.ts) or in this one
 * (inline-decider.ts).
 */
import { isDeepStrictEqual } from 'node:util'
import { ownValue } from '@tenon/api'
import type { DisruptionQuestion, DisruptionResult, SchedulingInput, SchedulingResult } from '@tenon/engine'
import { type Clock, type Random, uuid } from '@tenon/runtime'
import type { Metrics } from '../metrics/metrics.ts'

/** When a decision ends although it is not complete. */
export interface DecisionOptions {
  /** Milliseconds from the call. */
  readonly deadlineMs: number
  readonly signal: AbortSignal
}

/** Makes scheduling decisions, one at a time; others wait for their turn. */
export interface SchedulingDecider {
  /**
   * Decides for every pod of the input. At the deadline, or when the signal aborts, it returns what is
   * decided by then and lists the other pods as undecided.
   */
  decide(input: SchedulingInput, options: DecisionOptions): Promise<SchedulingResult>
  /**
   * Answers a question about removing nodes of the input. At the deadline, or when the signal aborts, it
   * returns what it has found by then.
   * @returns undefined if it had not begun by then, or if a decision about pending pods interrupted it.
   */
  examine(
    input: SchedulingInput,
    question: DisruptionQuestion,
    options: DecisionOptions,
  ): Promise<DisruptionResult | undefined>
  /** Ends the decision under way and frees what is held, such as a thread. */
  close(): Promise<void>
}

/** What {@link PassDecider} measures with. */
interface Measures {
  readonly metrics: Pick<Metrics, 'schedulingDuration' | 'schedulingQueueDepth' | 'schedulingUnfinishedWork'>
  readonly clock: Clock
  readonly random: Random
}

const controller = 'provisioner'
/** How often the age of a decision under way is measured. */
const unfinishedWorkMs = 1000

/** Makes the decisions of scheduling passes. Several passes may share the decider behind it. */
export class PassDecider {
  readonly #decider: Pick<SchedulingDecider, 'decide'>
  readonly #timeoutMs: number
  readonly #measures: Measures
  #last: { readonly input: SchedulingInput; readonly result: SchedulingResult } | undefined

  /** @param timeoutMs when a decision ends although it is not complete. */
  constructor(decider: Pick<SchedulingDecider, 'decide'>, timeoutMs: number, measures: Measures) {
    this.#decider = decider
    this.#timeoutMs = timeoutMs
    this.#measures = measures
  }

  async decide(input: SchedulingInput, signal: AbortSignal): Promise<SchedulingResult> {
    return await this.#timed(input.pods.length, async () => {
      const last = this.#last
      this.#last = undefined
      const result =
        last !== undefined && isSameInput(last.input, input)
          ? last.result
          : await this.#decider.decide(input, { deadlineMs: this.#timeoutMs, signal })
      // The newest input: most of the next one is the same objects.
      if (isRepeatable(result)) this.#last = { input, result }
      return result
    })
  }

  async #timed(pods: number, decide: () => Promise<SchedulingResult>): Promise<SchedulingResult> {
    const { clock, metrics, random } = this.#measures
    const series = { controller, scheduling_id: uuid(random) }
    const start = clock.monotonic()
    const seconds = () => (clock.monotonic() - start) / 1000
    // The last depth stays until the next decision begins.
    metrics.schedulingQueueDepth.reset()
    metrics.schedulingQueueDepth.set(series, pods)
    let stopMeasuring = () => {}
    const measure = () => {
      metrics.schedulingUnfinishedWork.set(series, seconds())
      stopMeasuring = clock.after(unfinishedWorkMs, measure)
    }
    measure()
    try {
      const result = await decide()
      metrics.schedulingQueueDepth.set(series, result.undecided.length)
      return result
    } finally {
      stopMeasuring()
      metrics.schedulingDuration.observe({ controller }, seconds())
      metrics.schedulingUnfinishedWork.remove(series)
    }
  }
}

/** The decider of a controller whose questions about removing nodes are measured under its name (scheduling.md 12.4). */
export function timingExaminations(
  decider: SchedulingDecider,
  name: string,
  { metrics, clock }: Pick<Measures, 'clock' | 'metrics'>,
): SchedulingDecider {
  return {
    decide: (input, options) => decider.decide(input, options),
    examine: async (input, question, options) => {
      const start = clock.monotonic()
      try {
        return await decider.examine(input, question, options)
      } finally {
        metrics.schedulingDuration.observe({ controller: name }, (clock.monotonic() - start) / 1000)
      }
    },
    close: () => decider.close(),
  }
}

/** Everything that a decision depends on. */
const parts: Readonly<Record<keyof SchedulingInput, true>> = {
  pods: true,
  nodes: true,
  pools: true,
  quotas: true,
  daemons: true,
  topology: true,
  policy: true,
  volumes: true,
  attachLimits: true,
  devices: true,
  origins: true,
  planned: true,
  offeringsOnTrial: true,
  podGroups: true,
}

/** Equal objects of different identity are compared up to this number: comparing takes time, too. */
const mostCompared = 1000

/** Whether the same input would give the same result: it launched nothing, and is complete and without a fault. */
function isRepeatable({ claims, deferred, failures, faults, undecided }: SchedulingResult): boolean {
  const isComplete = claims.length + deferred.length + faults.length + undecided.length === 0
  // Pods that decisions fail for are tried again after a time.
  return isComplete && !failures.some(({ reason }) => reason.kind === 'undecidable')
}

function isSameInput(a: SchedulingInput, b: SchedulingInput): boolean {
  // The result is about these very objects.
  if (a.pods.length !== b.pods.length || a.pods.some((pod, at) => pod !== b.pods[at])) return false
  const compared = { left: mostCompared }
  return (Object.keys(parts) as (keyof SchedulingInput)[]).every((part) => isSame(a[part], b[part], compared))
}

/** Whether two values are equal; false where finding that out takes too long. */
function isSame(a: unknown, b: unknown, compared: { left: number }): boolean {
  if (a === b) return true
  if (compared.left-- <= 0) return false
  if (Array.isArray(a) && Array.isArray(b))
    return a.length === b.length && a.every((each, at) => isSame(each, b[at], compared))
  if (a instanceof Map && b instanceof Map) {
    if (a.size !== b.size) return false
    for (const [key, value] of a) if (!b.has(key) || !isSame(value, b.get(key), compared)) return false
    return true
  }
  if (!isPlain(a) || !isPlain(b)) return isDeepStrictEqual(a, b)
  const names = Object.keys(a)
  if (names.length !== Object.keys(b).length) return false
  return names.every(
    (name) => Object.hasOwn(b, name) && isSame(ownValue(a, name), ownValue(b, name), compared),
  )
}

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype
}
