/** Turns the engine's claims into objects (scheduling.md 11.3, api.md 2). */
import {
  annotations,
  apiVersionOf,
  formatDuration,
  formatResources,
  karpenterKinds,
  type NewObject,
  type NodeClaim,
  type NodePool,
  nodePoolHash,
  nodePoolHashVersion,
  parseDuration,
} from '@tenon/api'
import type { NewClaim } from '@tenon/engine'

/** The NodeClaim for a planned node. It carries no finalizer: the lifecycle adds it before launch. */
export function nodeClaimFor(claim: NewClaim, pool: NodePool): NewObject<NodeClaim> {
  const { metadata, spec } = pool.spec.template
  const type = karpenterKinds.nodeClaim
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: {
      generateName: `${pool.metadata.name}-`,
      labels: claim.labels,
      annotations: {
        ...metadata?.annotations,
        [annotations.nodePoolHash]: nodePoolHash(pool),
        [annotations.nodePoolHashVersion]: nodePoolHashVersion,
        [annotations.minValuesRelaxed]: String(claim.minValuesRelaxed),
      },
      ownerReferences: [
        {
          apiVersion: apiVersionOf(karpenterKinds.nodePool),
          kind: karpenterKinds.nodePool.kind,
          name: pool.metadata.name,
          uid: pool.metadata.uid ?? '',
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: {
      nodeClassRef: spec.nodeClassRef,
      requirements: claim.requirements,
      ...(spec.taints && { taints: spec.taints }),
      ...(spec.startupTaints && { startupTaints: spec.startupTaints }),
      ...(spec.expireAfter !== undefined && { expireAfter: spec.expireAfter }),
      ...(spec.terminationGracePeriod !== undefined && {
        terminationGracePeriod: formatDuration(parseDuration(spec.terminationGracePeriod) ?? 0),
      }),
      resources: { requests: formatResources(claim.requests) },
    },
  }
}
