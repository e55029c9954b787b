/**
 * How many pods each PodDisruptionBudget still allows while removals are planned (cluster-autoscaler.md 6.3).
 */
import { matchesSelector, type Pod, type PodDisruptionBudget } from '@tenon/api'

interface Budget {
  readonly object: PodDisruptionBudget
  /** Undefined if the status has no number; then no pod is allowed. */
  remaining: number | undefined
}

/** Budgets of one namespace: indexed by a label that their pods must have, and all others. */
interface NamespaceBudgets {
  readonly byPair: Map<string, Budget[]>
  readonly others: Budget[]
}

export class DisruptionBudgets {
  readonly #byNamespace = new Map<string, NamespaceBudgets>()
  readonly #matching = new WeakMap<Pod, readonly Budget[]>()

  constructor(budgets: readonly PodDisruptionBudget[]) {
    for (const object of budgets) this.#add({ object, remaining: object.status?.disruptionsAllowed })
  }

  /** Whether any budget selects the pod. */
  covers(pod: Pod): boolean {
    return this.#of(pod).length > 0
  }

  /** Whether a budget of the pod allows no disruption. */
  isExhausted(pod: Pod): boolean {
    return this.#of(pod).some(({ remaining }) => remaining === undefined || remaining < 1)
  }

  /** Whether a budget allows fewer than all of the pods, so that they are evicted one after the other. */
  isExceededBy(pods: readonly Pod[]): boolean {
    return [...this.#countsOf(pods)].some(
      ([{ remaining }, count]) => remaining === undefined || count > remaining,
    )
  }

  /** Subtracts pods from the budgets. */
  take(pods: readonly Pod[]): void {
    for (const [budget, count] of this.#countsOf(pods)) {
      if (budget.remaining !== undefined) budget.remaining = Math.max(0, budget.remaining - count)
    }
  }

  #countsOf(pods: readonly Pod[]): Map<Budget, number> {
    const counts = new Map<Budget, number>()
    for (const pod of pods) {
      for (const budget of this.#of(pod)) counts.set(budget, (counts.get(budget) ?? 0) + 1)
    }
    return counts
  }

  #add(budget: Budget): void {
    const { metadata, spec } = budget.object
    const namespace = metadata.namespace ?? 'default'
    const known = this.#byNamespace.get(namespace) ?? { byPair: new Map<string, Budget[]>(), others: [] }
    this.#byNamespace.set(namespace, known)
    const [pair] = Object.entries(spec.selector?.matchLabels ?? {})
    if (pair === undefined) {
      known.others.push(budget)
      return
    }
    const key = pair.join('=')
    known.byPair.set(key, [...(known.byPair.get(key) ?? []), budget])
  }

  #of(pod: Pod): readonly Budget[] {
    const { labels, namespace = 'default' } = pod.metadata
    const known = this.#byNamespace.get(namespace)
    if (known === undefined) return []
    let matching = this.#matching.get(pod)
    if (matching === undefined) {
      const candidates = [...known.others]
      for (const pair of Object.entries(labels ?? {}))
        candidates.push(...(known.byPair.get(pair.join('=')) ?? []))
      matching = candidates.filter(({ object }) => matchesSelector(object.spec.selector, labels))
      this.#matching.set(pod, matching)
    }
    return matching
  }
}
