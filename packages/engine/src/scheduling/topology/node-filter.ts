/** Which nodes a topology rule counts (scheduling.md 9.1, 9.3). */
import type { Taint, Toleration } from '@tenon/api'
import type { ValueSet } from '../../requirements/requirement.ts'
import { compatible, type Requirements } from '../../requirements/requirements.ts'
import { hardTaints, untolerated } from '../pods/taints.ts'

/** Which nodes a spread constraint counts; affinity counts all nodes. */
export interface NodeFilter {
  /** A node must meet one of these; empty = every node. */
  readonly alternatives: readonly Requirements[]
  /** If set, nodes with hard taints that these do not tolerate are not counted. */
  readonly tolerations: readonly Toleration[] | undefined
}

const nothingUndefined: ReadonlySet<string> = new Set()

/** The hard taints that the tolerations of the rule do not tolerate. */
export function untoleratedBy(
  tolerations: readonly Toleration[] | undefined,
  taints: readonly Taint[],
): readonly Taint[] {
  if (tolerations === undefined || taints.length === 0) return []
  return untolerated(hardTaints(taints), tolerations)
}

/** Whether the node is counted. */
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

/** Whether a new node may match: its host name is unknown, and none that exists. */
export function allowsNewHost(host: ValueSet): boolean {
  return host.complement && host.gte === undefined && host.lte === undefined
}
