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
import type { NewClaim, TemplateClaim } from '@tenon/engine'

const priceOverlayApplied = 'karpenter.sh/price-overlay-applied'
const capacityOverlayApplied = 'karpenter.sh/capacity-overlay-applied'

/**
 * The NodeClaim for a planned node, after the NodePool that the decision saw. It carries no
 * finalizer: the lifecycle adds it before launch.
 * @param defaultGracePeriodMs grace period of claims whose NodePool sets none.
 * @param more annotations that say why there is this claim.
 */
export function nodeClaimFor(
  claim: NewClaim,
  defaultGracePeriodMs?: number,
  more: Readonly<Record<string, string>> = {},
): NewObject<NodeClaim> {
  return claimOf(claim.pool, defaultGracePeriodMs, {
    metadata: { labels: claim.labels },
    annotations: {
      [annotations.minValuesRelaxed]: String(claim.minValuesRelaxed),
      ...(claim.deviceDrivers.length > 0 && {
        [annotations.requestedDraDrivers]: claim.deviceDrivers.join(','),
      }),
      ...(claim.overlaid.price && { [priceOverlayApplied]: 'true' }),
      ...(claim.overlaid.capacity && { [capacityOverlayApplied]: 'true' }),
      ...more,
    },
    spec: {
      requirements: claim.requirements,
      ...taintsOf(claim),
      resources: { requests: formatResources(claim.requests) },
    },
  })
}

/** The NodeClaim for a node of a static NodePool: what the template says, and nothing about pods. */
export function staticClaimFor(
  pool: NodePool,
  { labels, requirements, taints }: TemplateClaim,
  name: string,
  defaultGracePeriodMs?: number,
): NewObject<NodeClaim> {
  return claimOf(pool, defaultGracePeriodMs, {
    metadata: { name, labels },
    annotations: {},
    spec: { requirements, ...taintsOf({ taints }) },
  })
}

/** What differs between claims of one NodePool. */
interface OwnParts {
  readonly metadata: Pick<NewObject<NodeClaim>['metadata'], 'name' | 'labels'>
  readonly annotations: Readonly<Record<string, string>>
  readonly spec: Pick<NodeClaim['spec'], 'requirements' | 'resources' | 'taints'>
}

function taintsOf({ taints }: Pick<NewClaim, 'taints'>): Pick<NodeClaim['spec'], 'taints'> {
  return taints.length === 0 ? {} : { taints }
}

function claimOf(
  pool: NodePool,
  defaultGracePeriodMs: number | undefined,
  own: OwnParts,
): NewObject<NodeClaim> {
  const { metadata, spec } = pool.spec.template
  const type = karpenterKinds.nodeClaim
  const gracePeriodMs =
    spec.terminationGracePeriod === undefined
      ? defaultGracePeriodMs
      : (parseDuration(spec.terminationGracePeriod) ?? 0)
  return {
    apiVersion: apiVersionOf(type),
    kind: type.kind,
    metadata: {
      generateName: `${pool.metadata.name}-`,
      ...own.metadata,
      annotations: {
        ...metadata?.annotations,
        [annotations.nodePoolHash]: nodePoolHash(pool),
        [annotations.nodePoolHashVersion]: nodePoolHashVersion,
        ...own.annotations,
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
      ...(spec.startupTaints && { startupTaints: spec.startupTaints }),
      ...(spec.expireAfter !== undefined && { expireAfter: spec.expireAfter }),
      ...(gracePeriodMs !== undefined && { terminationGracePeriod: formatDuration(gracePeriodMs) }),
      ...own.spec,
    },
  }
}
