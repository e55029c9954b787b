/** Which nodes a topology rule looks at (scheduling.md 9.1, 9.3). */
import type { Taint, Toleration } from '@tenon/api'
import type { ValueSet } from '../../requirements/requirement.ts'
import { compatible, type Requirements } from '../../requirements/requirements.ts'
import { hardTaints, untolerated } from '../pods/taints.ts'

/** Which nodes count for a spread; affinity groups count everywhere. */
export interface NodeFilter {
  /** Any of these must hold of a node; empty = every node. */
  readonly alternatives: readonly Requirements[]
  /** Set when nodes count only if these tolerate their taints, those of effect `PreferNoSchedule` apart. */
  readonly tolerations: readonly Toleration[] | undefined
}

const nothingUndefined: ReadonlySet<string> = new Set()

/** The hard taints of a node that the rule's tolerations do not cover. */
export function untoleratedBy(
  tolerations: readonly Toleration[] | undefined,
  taints: readonly Taint[],
): readonly Taint[] {
  if (tolerations === undefined || taints.length === 0) return []
  return untolerated(hardTaints(taints), tolerations)
}

/** Whether a node counts. */
export function admits(
  { alternatives, tolerations }: NodeFilter,
  node: Requirements,
  taints: readonly Taint[],
): boolean {
  if (untoleratedBy(tolerations, taints).length > 0) return false
  return (
    alternatives.length === 0 || alternatives.some((wanted) => compatible(node, wanted, nothingUndefined))
  )
}

/** Equal for filters that admit the same nodes. */
export function filterIdentity({ alternatives, tolerations }: NodeFilter): string {
  if (alternatives.length === 0 && tolerations === undefined) return ''
  const sets = alternatives.map((wanted) =>
    [...wanted.values()]
      .map((set) => [set.key, set.complement, [...set.values].toSorted(), String(set.gte), String(set.lte)])
      .toSorted((a, b) => (String(a[0]) < String(b[0]) ? -1 : 1)),
  )
  return JSON.stringify([sets, tolerations])
}

/** The host name of a new node is not known, and none that exists. */
export function allowsNewHost(host: ValueSet): boolean {
  return host.complement && host.gte === undefined && host.lte === undefined
}
