/** How much each group grows for the chosen option (cluster-autoscaler.md 4.6). */
import { balanced, type GroupIncrease } from './balancing.ts'
import type { ExpansionOption } from './option.ts'
import { type Search, type SearchQuestion, similarGroups, type ValidGroup } from './search.ts'

export interface Increases {
  readonly groups: readonly GroupIncrease[]
  /** Whether `--max-nodes-total` allows fewer nodes than the pods need. */
  readonly isCappedByTotal: boolean
}

/** Limits the option by the cluster's limits and distributes it over similar groups. May be empty. */
export function increasesFor(
  { groupId, nodeCount }: ExpansionOption,
  { valid }: Pick<Search, 'valid'>,
  question: SearchQuestion,
): Increases {
  const { options, view, quotas } = question
  const chosen = valid.get(groupId)
  if (chosen === undefined) return { groups: [], isCappedByTotal: false }
  const { maxNodesTotal } = options
  const most = maxNodesTotal > 0 ? Math.max(0, maxNodesTotal - view.snapshot.nodes.length) : nodeCount
  const wanted = quotas.most(chosen.template, Math.min(nodeCount, most))
  const candidates = [chosen, ...similarGroups(chosen, valid, question)]
  const shares = balanced(
    candidates.map(({ group }) => group),
    wanted,
  )
  const groups = shares.flatMap((share): GroupIncrease[] => {
    const { template } = valid.get(share.group.id) as ValidGroup
    const delta = quotas.most(template, share.newSize - share.group.targetSize)
    quotas.take(template, delta)
    return delta > 0 ? [{ ...share, newSize: share.group.targetSize + delta }] : []
  })
  return { groups, isCappedByTotal: nodeCount > most }
}
