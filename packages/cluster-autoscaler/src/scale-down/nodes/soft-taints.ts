/** Which candidate taints to add and remove (cluster-autoscaler.md 6.1). */
import type { Node } from '@tenon/api'
import { hardTaintOf, softTaintOf } from './taints.ts'

export interface SoftTaintChange {
  readonly nodeName: string
  readonly verb: 'add' | 'remove'
}

interface SoftTaintInput {
  /** Nodes of groups. */
  readonly nodes: readonly Node[]
  readonly unneeded: ReadonlySet<string>
  /** Nodes being deleted, which are not changed. */
  readonly going: ReadonlySet<string>
}

/** The changes: outdated taints are removed first. */
export function softTaintChanges({ nodes, unneeded, going }: SoftTaintInput): readonly SoftTaintChange[] {
  const changes = nodes.flatMap((node): SoftTaintChange[] => {
    const { name } = node.metadata
    if (going.has(name) || hardTaintOf(node) !== undefined) return []
    const isMarked = softTaintOf(node) !== undefined
    if (isMarked === unneeded.has(name)) return []
    return [{ nodeName: name, verb: isMarked ? 'remove' : 'add' }]
  })
  return changes.toSorted((a, b) => (a.verb === b.verb ? byName(a, b) : a.verb === 'remove' ? -1 : 1))
}

function byName(a: SoftTaintChange, b: SoftTaintChange): number {
  return a.nodeName < b.nodeName ? -1 : 1
}
