/** Groups below their minimum: `--enforce-node-group-min-size` (cluster-autoscaler.md 4.8). */
import type { NodeGroupIndex, NodeTemplate } from '../model.ts'
import type { GroupIncrease } from './balancing.ts'
import type { QuotaTracker } from './quotas.ts'
import type { GroupSafety } from './search.ts'

export interface MinSizeQuestion {
  readonly index: NodeGroupIndex
  readonly templates: ReadonlyMap<string, NodeTemplate>
  readonly safetyOf: (groupId: string) => GroupSafety
  readonly quotas: QuotaTracker
  /** 0 = unlimited. */
  readonly maxNodesTotal: number
}

export function increasesToMinSize(question: MinSizeQuestion): readonly GroupIncrease[] {
  const { index, templates, safetyOf, quotas, maxNodesTotal } = question
  return [...index.groups.values()].flatMap((group): GroupIncrease[] => {
    if (group.targetSize >= group.minSize || index.faults.has(group.id)) return []
    if (safetyOf(group.id) !== 'safe') return []
    const template = templates.get(group.id)
    const wanted = Math.min(group.minSize, group.maxSize) - group.targetSize
    const inTotal = maxNodesTotal > 0 ? Math.min(wanted, maxNodesTotal - group.targetSize) : wanted
    const delta = quotas.most(template, inTotal)
    if (delta <= 0) return []
    quotas.take(template, delta)
    return [{ group, newSize: group.targetSize + delta }]
  })
}
