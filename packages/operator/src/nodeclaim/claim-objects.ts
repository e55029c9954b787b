/** Builds NodeClaims from what the engine decided (scheduling.md 11.3, api.md 2). */
import {
  admitsValue,
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
  type Pod,
  wellKnownLabels,
} from '@tenon/api'
import { type NewClaim, templateClaim } from '@tenon/engine'
import type { CloudProvider, NodeDefaults } from '@tenon/provider'
import { balanceCostAnnotation } from '../cloud/zone-balance.ts'
import { controllerAnnotation, controllerOf } from '../state/nodepools/node-pool-selection.ts'
import { largestAnnotation } from '../state/quotas.ts'
import { workloadOf } from '../state/pods/workloads.ts'
import { claimTraceAnnotations } from './claim-traces.ts'

const priceOverlayApplied = 'karpenter.sh/price-overlay-applied'
const capacityOverlayApplied = 'karpenter.sh/capacity-overlay-applied'

/**
 * The NodeClaim for a planned node, of the NodePool as the decision saw it.
 * @param defaultGracePeriodMs grace period of claims whose NodePool sets none.
 * @param more further annotations.
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

/** The NodeClaim for a node of a static NodePool, from the template alone: there are no pods that it is for. */
export function staticClaimFor(
  provider: CloudProvider,
  pool: NodePool,
  name: string,
): NewObject<NodeClaim> & { readonly metadata: { readonly name: string } } {
  const defaults = nodeDefaults(provider, pool)
  const wellKnown = new Set([...wellKnownLabels, ...provider.wellKnownLabels])
  const template = templateClaim({ nodePool: pool, ...(defaults && { defaults }) }, wellKnown)
  const claim = claimOf(pool, provider.defaultTerminationGracePeriodMs, {
    metadata: { labels: template.labels },
    annotations: {},
    spec: { requirements: template.requirements, ...taintsOf(template) },
  })
  return { ...claim, metadata: { ...claim.metadata, name } }
}

function taintsOf({ taints }: Pick<NewClaim, 'taints'>): Pick<NodeClaim['spec'], 'taints'> {
  return taints.length === 0 ? {} : { taints }
}

const launchAnnotations: ReadonlySet<string> = new Set([
  largestAnnotation,
  balanceCostAnnotation,
  ...claimTraceAnnotations,
])

/** A claim with what all claims of the pool have in common, and what it has of its `own`. It gets its finalizer before launch. */
function claimOf(
  pool: NodePool,
  defaultGracePeriodMs: number | undefined,
  own: {
    readonly metadata: Pick<NewObject<NodeClaim>['metadata'], 'labels'>
    readonly annotations: Readonly<Record<string, string>>
    readonly spec: Pick<NodeClaim['spec'], 'requirements' | 'resources' | 'taints'>
  },
): NewObject<NodeClaim> {
  const { metadata, spec } = pool.spec.template
  const type = karpenterKinds.nodeClaim
  const controller = controllerOf(pool)
  // Only launches know these.
  const ofTemplate = Object.entries(metadata?.annotations ?? {}).filter(
    ([key]) => !launchAnnotations.has(key),
  )
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
        ...Object.fromEntries(ofTemplate),
        ...(controller !== undefined && { [controllerAnnotation]: controller }),
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

/** Labels and taints of the pool's node class that its template does not override; undefined if there are none. */
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

/**
 * Tells the next process which workloads a NodeClaim was launched for, as `KEY=PODS`, separated by commas: a node that
 * they cannot use must not be launched again.
 */
const launchedForAnnotation = 'tenon.sh/launched-for'
/** Bounds the annotation to 4 kB; a node for so many workloads is not useless for all of them. */
const maxWorkloads = 200

/** @param pods as the API server has them: decisions may see other owners. */
export function launchedFor(pods: readonly Pod[]): Readonly<Record<string, string>> {
  const counts = new Map<string, number>()
  for (const pod of pods) {
    const key = workloadOf(pod)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  if (counts.size > maxWorkloads) return {}
  const parts = [...counts].map(([key, count]) => `${key}=${count}`).toSorted()
  return { [launchedForAnnotation]: parts.join(',') }
}

/** Number of pods that the claim was launched for, by key of their workload. */
export function workloadsOf({ metadata }: NodeClaim): ReadonlyMap<string, number> {
  const counts = new Map<string, number>()
  for (const part of (metadata.annotations?.[launchedForAnnotation] ?? '').split(',')) {
    const [key = '', count = ''] = part.split('=')
    if (key !== '' && Number(count) > 0) counts.set(key, Number(count))
  }
  return counts
}
