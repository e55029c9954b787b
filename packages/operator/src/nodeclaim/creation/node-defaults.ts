/** What a node class gives the nodes of a NodePool. */
import { admitsValue, type NodePool } from '@tenon/api'
import type { CloudProvider, NodeDefaults } from '@tenon/provider'

/**
 * Labels and taints of the pool's node class; what the template says of the same label or taint wins. Undefined when
 * there are none.
 */
export function nodeDefaults(
  provider: Pick<CloudProvider, 'nodeDefaults'>,
  pool: NodePool,
): NodeDefaults | undefined {
  const given = provider.nodeDefaults?.(pool)
  if (given === undefined) return undefined
  const { metadata, spec } = pool.spec.template
  const labels = Object.entries(given.labels).filter(
    ([key, value]) =>
      !Object.hasOwn(metadata?.labels ?? {}, key) &&
      spec.requirements.every((requirement) => requirement.key !== key || admitsValue(requirement, value)),
  )
  const own = [...(spec.taints ?? []), ...(spec.startupTaints ?? [])]
  const taints = given.taints.filter(
    ({ key, effect }) => !own.some((taint) => taint.key === key && taint.effect === effect),
  )
  if (labels.length === 0 && taints.length === 0) return undefined
  return { labels: Object.fromEntries(labels), taints }
}
