/** NodePools of claims, and node classes of NodePools. */
import { labels, type NodeClaim, type NodeClass, type NodePool, parseNillableDuration } from '@tenon/api'
import type { Change } from '@tenon/kube'
import { perObject } from '@tenon/runtime'
import type { Enqueue } from '../../controller.ts'
import type { Caches } from '../caches.ts'

/** Name of the claim's NodePool; empty if it has none. */
export const poolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''

/** Undefined while the node class does not exist. */
export function nodeClassOf(
  { nodeClasses }: Pick<Caches, 'nodeClasses'>,
  pool: NodePool,
): NodeClass | undefined {
  const ref = pool.spec.template.spec.nodeClassRef
  const cache = nodeClasses.find(({ type }) => type.group === ref.group && type.kind === ref.kind)
  return cache?.get({ name: ref.name })
}

/** The NodePools of a node class. */
export function poolsOfClass(
  { nodePools }: Pick<Caches, 'nodePools'>,
  { kind, metadata }: NodeClass,
): readonly NodePool[] {
  return nodePools.list().filter(({ spec }) => {
    const ref = spec.template.spec.nodeClassRef
    return ref.kind === kind && ref.name === metadata.name
  })
}

/** Whether the spec has changed, or the object was deleted. */
export function isSpecChange(change: Change<NodePool | NodeClass>): boolean {
  if (change.kind === 'deleted') return true
  return change.kind === 'updated' && change.old.metadata.generation !== change.object.metadata.generation
}

/** Enqueues the NodePools of every node class that changes. */
export function enqueuePoolsOfClasses(
  { nodePools, nodeClasses }: Pick<Caches, 'nodePools' | 'nodeClasses'>,
  enqueue: Enqueue,
): void {
  for (const cache of nodeClasses)
    cache.onChange(({ object }) => {
      for (const { metadata, spec } of nodePools.list())
        if (spec.template.spec.nodeClassRef.name === object.metadata.name) enqueue(metadata.name)
    })
}

/**
 * `disruption.consolidateAfter` in milliseconds; Infinity for Never. Memoized, as it is read for every pod that comes or
 * goes.
 */
export const consolidateAfterMs = perObject(
  ({ spec }: NodePool): number => parseNillableDuration(spec.disruption?.consolidateAfter ?? '0s') ?? 0,
)
