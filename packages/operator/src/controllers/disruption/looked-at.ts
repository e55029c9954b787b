/** Which candidates a search for consolidation has found nothing for, as they were then. */
import type { Candidate } from './candidates.ts'

/** Everything is looked at again after this: room elsewhere and prices change, too. */
const lastsMs = 5 * 60_000

interface Sight {
  /** UIDs of the pods that must move. */
  readonly pods: readonly string[]
  readonly pricePerHour: number
  /** Of its NodePool. */
  readonly generation: number | undefined
}

type Looked = Pick<Candidate, 'name' | 'movable' | 'pricePerHour' | 'pool'>

/**
 * On a busy cluster something has changed at every look, and nearly all nodes are as they were: to pack them anew
 * each time, alone and in groups, is most of what looking costs.
 */
export class LookedAt {
  #sights = new Map<string, Sight>()
  #budgets: ReadonlyMap<string, number> = new Map()
  #wholeAtMs = Number.NEGATIVE_INFINITY

  /** Names of the candidates that need not be looked at again now. */
  unchanged(
    candidates: Iterable<Looked>,
    budgets: ReadonlyMap<string, number>,
    nowMs: number,
  ): ReadonlySet<string> {
    if (nowMs - this.#wholeAtMs >= lastsMs || !isSameBudget(budgets, this.#budgets)) this.forget()
    const names = new Set<string>()
    for (const candidate of candidates) {
      const sight = this.#sights.get(candidate.name)
      if (sight !== undefined && isAsSeen(candidate, sight)) names.add(candidate.name)
    }
    return names
  }

  /** Nothing was found for any of these. */
  note(candidates: Iterable<Looked>, budgets: ReadonlyMap<string, number>, nowMs: number): void {
    if (this.#sights.size === 0) this.#wholeAtMs = nowMs
    this.#budgets = budgets
    this.#sights = new Map(Array.from(candidates, (candidate) => [candidate.name, sightOf(candidate)]))
  }

  /** Something is about to change for all of them. */
  forget(): void {
    this.#sights.clear()
  }
}

/** Whether NodePools have as many disruptions left. */
export function isSameBudget(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): boolean {
  return a.size === b.size && [...a].every(([pool, left]) => b.get(pool) === left)
}

const sightOf = ({ movable, pricePerHour, pool }: Looked): Sight => ({
  pods: movable.map(({ metadata }) => metadata.uid ?? ''),
  pricePerHour,
  generation: pool.metadata.generation,
})

function isAsSeen({ movable, pricePerHour, pool }: Looked, sight: Sight): boolean {
  return (
    pricePerHour === sight.pricePerHour &&
    pool.metadata.generation === sight.generation &&
    movable.length === sight.pods.length &&
    movable.every(({ metadata }, at) => metadata.uid === sight.pods[at])
  )
}
