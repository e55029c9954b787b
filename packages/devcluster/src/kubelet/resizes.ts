/** In-place resizes of the pods of one node: what fits is allocated at once, others wait for room. */
import type { NodeEntry, PodFacts, ResourceTable } from '@tenon/filters'
import { resizeRefusal } from './admission.ts'
import type { PodWorker } from './pod-worker.ts'

export class Resizes {
  readonly #taken: NodeEntry
  readonly #table: ResourceTable
  /** In order of their requests. */
  readonly #waiting = new Set<PodWorker>()

  /** @param taken what the admitted pods use together. */
  constructor(taken: NodeEntry, table: ResourceTable) {
    this.#taken = taken
    this.#table = table
  }

  /** Call it when a pod may request a resize. */
  observe(worker: PodWorker): void {
    const has = worker.facts
    const wants = this.#taken.pods.has(has.uid) ? worker.wanted() : undefined
    if (wants === undefined) {
      this.#waiting.delete(worker)
      if (this.#taken.pods.has(has.uid)) worker.keep(undefined)
      return
    }
    const refusal = resizeRefusal(has, wants, this.#taken, this.#table)
    if (refusal?.reason === 'Deferred') this.#waiting.add(worker)
    else this.#waiting.delete(worker)
    if (refusal !== undefined) return worker.keep(refusal)
    this.#taken.remove(has)
    this.#taken.add(wants)
    worker.resize(wants)
    if (isLess(wants, has)) this.retry()
  }

  /** Call it when room was freed. */
  retry(): void {
    for (const worker of this.#waiting.values().toArray()) this.observe(worker)
  }
}

/** Whether the first requests less of some resource. */
function isLess(a: PodFacts, b: PodFacts): boolean {
  const amounts = new Map(a.requests.map(({ slot, amount }) => [slot, amount]))
  return b.requests.some(({ slot, amount }) => (amounts.get(slot) ?? 0) < amount)
}
