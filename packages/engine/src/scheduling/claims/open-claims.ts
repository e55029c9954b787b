/**
 * The claims of a simulation, in the order in which they are tried: fewest pods first; of claims with one pod the
 * oldest first, of others the one that got its last pod most recently (scheduling.md 6.3).
 */
import type { PricePerHour } from '@tenon/api'
import type { ClaimClass } from './claim-class.ts'
import type { Consumer } from '../devices/ledger.ts'
import type { HostPort } from '../../input/host-ports.ts'
import type { Amounts } from '../pods/resource-space.ts'
import type { NodeView } from '../topology/node-domains.ts'

/** A claim during a simulation. */
export interface OpenClaim extends NodeView {
  readonly isNode: false
  readonly number: number
  class: ClaimClass
  state: number
  /** Requests of its pods, without daemon pods. */
  readonly amounts: Amounts
  /** Indexes of its pods. */
  readonly pods: number[]
  hostPorts: readonly HostPort[]
  minValuesRelaxed: boolean
  /** Reservations held, by id. */
  reservations: ReadonlySet<string>
  /** Identifies it in the ledger of devices; undefined until a pod has ResourceClaims. */
  consumer: Consumer | undefined
  /** The number of placements when it got its last pod. */
  arrival: number
  /** Its slot in the log of its class and number of pods. */
  slot: number
  /** Index of the cheapest row of its class that holds it; it only grows while the class stays. */
  cheapest: number
  /** The price of one more pod with these requests; valid while pods and class stay. */
  rise: Rise | undefined
}

interface Rise {
  readonly amounts: Amounts
  readonly pricePerHour: PricePerHour
}

/** Whether claim `a` is tried before `b`. */
export function isBefore(a: OpenClaim, b: OpenClaim): boolean {
  const byPods = a.pods.length - b.pods.length
  if (byPods !== 0) return byPods < 0
  return a.pods.length === 1 ? a.number < b.number : a.arrival > b.arrival
}

/** Claims of one class with the same number of pods, in order of arrival. Slots of removed claims stay empty. */
interface Log {
  readonly slots: (OpenClaim | undefined)[]
  live: number
}

/** Slots of one log that never accept a shape. */
interface Knowledge {
  /** Oldest first: everything before this slot is dead. Used where the oldest claim is tried first. */
  head: number
  /** Newest first: dead stretches [start, end), lowest at the bottom. */
  readonly dead: { start: number; end: number }[]
}

/** Whether a claim accepts a pod: `notNow` may change as other pods are placed, `never` does not. */
export type Answer = 'accepts' | 'notNow' | 'never'

/** The open claims of one class. */
export class ClaimQueue {
  readonly #logs: (Log | undefined)[] = []
  readonly #knowledge = new Map<number, (Knowledge | undefined)[]>()
  #least = 1
  #live = 0

  get isEmpty(): boolean {
    return this.#live === 0
  }

  add(claim: OpenClaim): void {
    const pods = claim.pods.length
    const log = (this.#logs[pods] ??= { slots: [], live: 0 })
    claim.slot = log.slots.length
    log.slots.push(claim)
    log.live++
    this.#live++
    if (pods < this.#least) this.#least = pods
  }

  /** Removes a claim, before its pods or its class change. */
  remove(claim: OpenClaim): void {
    const log = this.#logs[claim.pods.length]
    if (log === undefined) return
    log.slots[claim.slot] = undefined
    log.live--
    this.#live--
  }

  /** Puts a claim back where it was before {@link remove}, with the pods that it had. */
  restore(claim: OpenClaim): void {
    const pods = claim.pods.length
    const log = this.#logs[pods]
    if (log === undefined) return
    log.slots[claim.slot] = claim
    log.live++
    this.#live++
    if (pods < this.#least) this.#least = pods
  }

  /** Forgets which claims answered `never`: some may have more room now. */
  forget(): void {
    this.#knowledge.clear()
  }

  /**
   * The first claim that accepts pods of a shape.
   * @param shape index of the shape, whose `never` answers are memoized.
   * @param before only a claim that is tried before this one is returned.
   */
  first(
    shape: number,
    before: OpenClaim | undefined,
    ask: (claim: OpenClaim) => Answer,
  ): OpenClaim | undefined {
    if (this.#live === 0) return undefined
    let byPods = this.#knowledge.get(shape)
    if (byPods === undefined) {
      byPods = []
      this.#knowledge.set(shape, byPods)
    }
    const most = before === undefined ? this.#logs.length - 1 : before.pods.length
    let isLeast = true
    for (let pods = this.#least; pods <= most; pods++) {
      const log = this.#logs[pods]
      if (log === undefined || log.live === 0) {
        if (isLeast && pods === this.#least && pods < this.#logs.length - 1) this.#least++
        else isLeast = false
        continue
      }
      isLeast = false
      const knowledge = (byPods[pods] ??= { head: 0, dead: [] })
      const found = pods === 1 ? oldest(log, knowledge, ask) : newest(log, knowledge, ask)
      if (found !== undefined) return before === undefined || isBefore(found, before) ? found : undefined
    }
    return undefined
  }
}

function oldest(log: Log, knowledge: Knowledge, ask: (claim: OpenClaim) => Answer): OpenClaim | undefined {
  let isDeadSoFar = true
  for (let slot = knowledge.head; slot < log.slots.length; slot++) {
    const claim = log.slots[slot]
    const answer = claim === undefined ? 'never' : ask(claim)
    if (answer === 'accepts') return claim
    if (answer === 'notNow') isDeadSoFar = false
    else if (isDeadSoFar) knowledge.head = slot + 1
  }
  return undefined
}

function newest(log: Log, knowledge: Knowledge, ask: (claim: OpenClaim) => Answer): OpenClaim | undefined {
  const { dead } = knowledge
  const learnt: { start: number; end: number }[] = []
  let end = log.slots.length
  let slot = end - 1
  let found: OpenClaim | undefined
  while (slot >= 0) {
    const top = dead.at(-1)
    if (top !== undefined && slot < top.end) {
      dead.pop()
      slot = top.start - 1
      continue
    }
    const claim = log.slots[slot]
    const answer = claim === undefined ? 'never' : ask(claim)
    if (answer !== 'never') {
      if (end > slot + 1) learnt.push({ start: slot + 1, end })
      end = slot
      if (answer === 'accepts') {
        found = claim
        break
      }
    }
    slot--
  }
  if (found === undefined && end > 0) learnt.push({ start: 0, end })
  for (let i = learnt.length - 1; i >= 0; i--) dead.push(learnt[i] as { start: number; end: number })
  return found
}
