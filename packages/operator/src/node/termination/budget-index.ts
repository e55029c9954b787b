/** Finds the PDBs of a pod without comparing every pod with every PDB. */
import { matchesSelector, type Pod, type PodDisruptionBudget } from '@tenon/api'

/**
 * PDBs by namespace and by one label that their pods must carry. A lookup costs the labels of the pod
 * plus the PDBs that share one of them, whatever the number of PDBs.
 */
export class BudgetIndex {
  readonly #byLabel = new Map<string, PodDisruptionBudget[]>()

  constructor(budgets: readonly PodDisruptionBudget[]) {
    for (const budget of budgets) {
      const [label] = Object.entries(budget.spec.selector?.matchLabels ?? {})
      const key = keyOf(budget.metadata.namespace, label)
      const known = this.#byLabel.get(key)
      if (known === undefined) this.#byLabel.set(key, [budget])
      else known.push(budget)
    }
  }

  /** The PDBs that cover the pod, by name. */
  covering({ metadata: { namespace, labels = {} } }: Pod): readonly PodDisruptionBudget[] {
    const keys = [
      keyOf(namespace, undefined),
      ...Object.entries(labels).map((label) => keyOf(namespace, label)),
    ]
    return keys
      .flatMap((key) => this.#byLabel.get(key) ?? [])
      .filter((budget) => matchesSelector(budget.spec.selector, labels))
      .toSorted((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1))
  }
}

/** PDBs without `matchLabels` are looked at for every pod of their namespace. */
function keyOf(namespace = '', label: readonly [string, string] | undefined): string {
  return label === undefined ? namespace : `${namespace}/${label[0]}=${label[1]}`
}
