/** What a migration has to be allowed (adoption.md 2). */
import type { AccessReviews, AccessRight } from '@tenon/kube'
import { clusterAutoscalerLease } from '../../source/cluster-autoscaler-signs.ts'
import { statusName } from '../../source/node-groups.ts'
import { rightText } from '../preflight/checks/rights.ts'
import { inParallel } from '../preflight/in-parallel.ts'
import { lockLease } from './lock.ts'

interface Needed {
  readonly right: AccessRight
  /** Completes "to …". */
  readonly purpose: string
}

/** Each in one line; undefined if none is missing. */
export interface MissingRights {
  /** Those without which there is no plan. */
  readonly reads: string | undefined
  /** Those with which the plan is carried out. */
  readonly changes: string | undefined
}

const atOnce = 8
const coordination = 'coordination.k8s.io'
const karpenter = 'karpenter.sh'

function needed(purpose: string, verbs: string, group: string, ...resources: readonly string[]): Needed[] {
  return resources.flatMap((whole) => {
    const [resource = '', subresource] = whole.split('/')
    return verbs.split(',').map((verb) => ({
      purpose,
      right: { verb, group, resource, ...(subresource !== undefined && { subresource }) },
    }))
  })
}

function named(rights: readonly Needed[], name: string, namespace?: string): Needed[] {
  return rights.map(({ right, purpose }) => ({
    purpose,
    right: { ...right, name, ...(namespace !== undefined && { namespace }) },
  }))
}

const besides = 'see whether a Cluster Autoscaler runs'
const holds = 'see which pods may not be evicted'
const back = 'see whether the pods of workloads are back'
const reads: readonly Needed[] = [
  ...needed('find the nodes of both sides', 'list', '', 'nodes'),
  ...needed('find the nodes of both sides', 'list', karpenter, 'nodeclaims'),
  ...needed('read the NodePool', 'get', karpenter, 'nodepools'),
  ...needed('find the pods that move', 'list', '', 'pods'),
  ...needed(holds, 'list', 'policy', 'poddisruptionbudgets'),
  ...needed(holds, 'list', '', 'persistentvolumeclaims', 'persistentvolumes'),
  ...needed(besides, 'list', 'apps', 'deployments'),
  ...named(needed(besides, 'list', coordination, 'leases'), clusterAutoscalerLease),
  ...named(needed(besides, 'list', '', 'configmaps'), statusName),
]
const changes: readonly Needed[] = [
  ...named(
    needed('lock out other migrations', 'get,patch', coordination, 'leases'),
    lockLease.name,
    lockLease.namespace,
  ),
  ...needed('lock out other migrations', 'create', coordination, 'leases').map(({ right, purpose }) => ({
    purpose,
    right: { ...right, namespace: lockLease.namespace },
  })),
  ...needed('pause launches, and remember the size of the node group', 'patch', karpenter, 'nodepools'),
  ...needed('cordon nodes', 'get,patch', '', 'nodes'),
  ...needed('drain nodes', 'create', '', 'pods/eviction'),
  ...needed(holds, 'get', '', 'persistentvolumeclaims', 'persistentvolumes'),
  ...needed(back, 'get', 'apps', 'replicasets', 'statefulsets'),
  ...needed(back, 'get', '', 'replicationcontrollers'),
  ...needed(back, 'get', 'batch', 'jobs'),
]
const removals = needed('remove drained nodes of the NodePool', 'delete', karpenter, 'nodeclaims')

/** Asks the API server what the caller may do. */
export async function missingRights(
  reviews: Pick<AccessReviews, 'isAllowed'>,
  direction: 'there' | 'back',
  signal: AbortSignal,
): Promise<MissingRights> {
  const lacking = async (rights: readonly Needed[]) => {
    const asked = await inParallel(rights, atOnce, async (each) => ({
      each,
      isAllowed: await reviews.isAllowed(each.right, undefined, signal),
    }))
    return textOf(asked.flatMap(({ each, isAllowed }) => (isAllowed ? [] : [each])))
  }
  return {
    reads: await lacking(reads),
    changes: await lacking(direction === 'there' ? changes : [...changes, ...removals]),
  }
}

function textOf(missing: readonly Needed[]): string | undefined {
  if (missing.length === 0) return undefined
  const texts = Array.from(
    Map.groupBy(missing, ({ purpose }) => purpose),
    ([purpose, rights]) => `${rights.map(({ right }) => rightText(right)).join(', ')} (to ${purpose})`,
  )
  return `you may not ${texts.join('; ')}`
}
