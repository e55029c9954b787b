/** Resizes of the pods of one node in place: what fits is given at once, the rest waits for room. */
import type { NodeEntry, PodFacts, ResourceTable } from '@tenon/filters'
import { resizeRefusal } from './admission.ts'
import type { PodWorker } from './pod-worker.ts'

export class Resizes {
  readonly #taken: NodeEntry
  readonly #table: ResourceTable
  /** In the order in which they asked. */
  readonly #waiting = new Set<PodWorker>()

  /** @param taken what the pods that are kept on the node take together. */
  constructor(taken: NodeEntry, table: ResourceTable) {
    this.#taken = taken
    this.#table = table
  }

  /** A pod of the node may ask for something else than it has. */
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

  /** Room has come free. */
  retry(): void {
    for (const worker of this.#waiting.values().toArray()) this.observe(worker)
  }
}

/** Whether the first asks for less of something. */
function isLess(a: PodFacts, b: PodFacts): boolean {
  const amounts = new Map(a.requests.map(({ slot, amount }) => [slot, amount]))
  return b.requests.some(({ slot, amount }) => (amounts.get(slot) ?? 0) < amount)
}
