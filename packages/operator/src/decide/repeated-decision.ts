/** Decisions that were made already: pods that wait for their nodes are looked at again and again meanwhile. */
import { isDeepStrictEqual } from 'node:util'
import { ownValue } from '@tenon/api'
import type { SchedulingInput, SchedulingResult } from '@tenon/engine'
import type { DecisionOptions, SchedulingDecider } from './decider.ts'

/** Everything that a decision depends on. */
const parts: Readonly<Record<keyof SchedulingInput, true>> = {
  pods: true,
  nodes: true,
  pools: true,
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

/** Objects that are not the same and may say the same are compared up to this number: it takes time, too. */
const mostCompared = 1000

/**
 * Answers from the last decision as long as nothing that it depends on has changed and it launched nothing. What was
 * not decided, or not as it should be, is decided anew.
 */
export class RepeatedDecision implements Pick<SchedulingDecider, 'decide'> {
  readonly #decider: Pick<SchedulingDecider, 'decide'>
  #last: { readonly input: SchedulingInput; readonly result: SchedulingResult } | undefined

  constructor(decider: Pick<SchedulingDecider, 'decide'>) {
    this.#decider = decider
  }

  async decide(input: SchedulingInput, options: DecisionOptions): Promise<SchedulingResult> {
    const last = this.#last
    this.#last = undefined
    const isKnown = last !== undefined && isSameInput(last.input, input)
    const result = isKnown ? last.result : await this.#decider.decide(input, options)
    // The newest input: most of the next one is the same objects.
    if (isRepeatable(result)) this.#last = { input, result }
    return result
  }
}

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

/** Whether two values say the same; false where finding that out takes too long. */
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
