/** Features that kubelets will declare which have not done so yet: those of starting nodes and of new ones. */
import { featuresAnnotation, featuresOfKubelet, minorOf, type NodeClass, type NodePool } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import { poolOf } from '../nodepools/managed-pool.ts'
import type { StateNode } from './state-node.ts'

/** Initialized instances by NodePool, newest first. */
const initializedByPool = perObject((stateNodes: readonly StateNode[]) => {
  const createdAt = ({ node }: StateNode) => node?.metadata.creationTimestamp ?? ''
  const initialized = stateNodes
    .filter(({ node, claim, isInitialized }) => node !== undefined && claim !== undefined && isInitialized)
    .toSorted((a, b) => (createdAt(a) < createdAt(b) ? 1 : -1))
  return Map.groupBy(initialized, ({ claim }) => (claim === undefined ? '' : poolOf(claim)))
})

/**
 * What kubelets of new nodes of a NodePool will declare: the same as the newest initialized node of the NodePool with the
 * same node class and minor of Kubernetes; without such a node, what kubelets of that minor declare by default, and what
 * the node class says in annotation `tenon.sh/declared-features`.
 * @param stateNodes all instances.
 * @param kubeletVersion of new nodes, if the provider knows it.
 * @returns undefined if nothing is known; such nodes must not be counted on.
 */
export function expectedFeatures(
  pool: NodePool,
  nodeClass: NodeClass | undefined,
  kubeletVersion: string | undefined,
  stateNodes: readonly StateNode[],
): readonly string[] | undefined {
  const minor = minorOf(kubeletVersion ?? '')
  const { group, kind, name } = pool.spec.template.spec.nodeClassRef
  const like = initializedByPool(stateNodes)
    .get(pool.metadata.name)
    ?.find(({ node, claim }) => {
      const ref = claim?.spec.nodeClassRef
      return (
        ref?.group === group &&
        ref.kind === kind &&
        ref.name === name &&
        (minor === undefined || minorOf(node?.status?.nodeInfo?.['kubeletVersion'] ?? '') === minor)
      )
    })
  if (like !== undefined) return like.node?.status?.declaredFeatures ?? []
  const byDefault = featuresOfKubelet(minor)
  const annotated = nodeClass?.metadata.annotations?.[featuresAnnotation]
  if (annotated === undefined) return byDefault
  const named = annotated.split(',').flatMap((each) => each.trim() || [])
  return [...new Set([...(byDefault ?? []), ...named])].toSorted()
}
