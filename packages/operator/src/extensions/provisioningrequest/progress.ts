/** How far the search for the room of a ProvisioningRequest has come (gangs.md 7.6). */
import { isConditionTrue, type KubeObject, labels, normalizedLabel, ownValue, type Pod } from '@tenon/api'
import { renderPodReason } from '@tenon/engine'
import { type KeptPlans, notedClaims } from '../../placement/planned-pods.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { groupsOfClaim } from '../../state/pods/group-of-pod.ts'
import type { PlanTarget, PodPlans } from '../../state/pods/pod-plans.ts'
import type { ServedRequest } from '../../state/pods/request-pods.ts'
import { claimsOfGroup } from '../podgroup/standing.ts'

export type Progress =
  /** There is no decision, or it is not carried out yet. */
  | { readonly kind: 'undecided' }
  | { readonly kind: 'underWay'; readonly nodes: number; readonly launched: number; readonly ready: number }
  | {
      readonly kind: 'found'
      /** Whether nodes were launched for it. */
      readonly isLaunched: boolean
      readonly details: Readonly<Record<string, string>>
    }
  | { readonly kind: 'notFound'; readonly message: string }

type Instances = Pick<Caches, 'nodeClaims' | 'nodes'>

export function progressOf(
  caches: Instances,
  { plans, podGroups, requests }: Pick<ClusterState, 'plans' | 'podGroups' | 'requests'>,
  served: ServedRequest,
): Progress {
  const { ref, request, pods } = served
  const { uid = '' } = request.metadata
  const claims = claimsOfGroup(caches, ref.id).filter((claim) =>
    groupsOfClaim(claim).some((group) => group.id === ref.id && group.uid === uid),
  )
  const outcome = requests.outcomeOf(ref.id)
  const because = outcome?.kind === 'refused' ? renderPodReason(outcome.reason) : undefined
  const targets = () => targetsOf(plans, pods)
  if (podGroups.roundOf(uid) !== undefined) {
    if (claims.length > 0) return underWay(caches, targets())
    podGroups.endRound(uid)
    const released = 'not all nodes that it needs could be had, and those that could are released'
    return { kind: 'notFound', message: because === undefined ? released : `${released}; ${because}` }
  }
  const isPlanned = pods.every(({ metadata }) => plans.get(metadata.uid ?? '') !== undefined)
  if (isPlanned && (outcome?.kind === 'placed' || claims.length > 0)) {
    const planned = targets()
    // A check launches nothing, so room on nodes on their way counts for it.
    if (served.class === 'atomic' && !planned.every((target) => isReady(caches, target)))
      return underWay(caches, planned)
    return {
      kind: 'found',
      isLaunched: claims.length > 0,
      details: detailsOf(caches, planned, served.topologyKey),
    }
  }
  if (claims.length > 0) return underWay(caches, targets())
  return because === undefined ? { kind: 'undecided' } : { kind: 'notFound', message: because }
}

/** Restores the plans of an earlier process, as far as its claims note them. */
export function resumePlansOf(
  caches: Instances,
  keptPlans: KeptPlans,
  { ref, pods }: Pick<ServedRequest, 'pods' | 'ref'>,
): void {
  const byUid = new Map(pods.map((pod) => [pod.metadata.uid ?? '', pod]))
  for (const [uid, name] of notedClaims(claimsOfGroup(caches, ref.id), byUid.keys())) {
    const pod = byUid.get(uid)
    if (pod !== undefined) keptPlans.keep([pod], { kind: 'claim', name })
  }
}

/** Name of the Node that a pod is planned for. */
export function plannedNodeOf(
  { nodeClaims }: Pick<Caches, 'nodeClaims'>,
  plans: PodPlans,
  { metadata }: Pod,
): string | undefined {
  const target = plans.get(metadata.uid ?? '')?.target
  if (target === undefined || target.kind === 'node') return target?.name
  return nodeClaims.get({ name: target.name })?.status?.nodeName
}

/** The instances that the pods are planned for, each once. */
function targetsOf(plans: PodPlans, pods: readonly Pod[]): readonly PlanTarget[] {
  const targets = new Map<string, PlanTarget>()
  for (const { metadata } of pods) {
    const target = plans.get(metadata.uid ?? '')?.target
    if (target !== undefined) targets.set(`${target.kind}/${target.name}`, target)
  }
  return [...targets.values()]
}

function underWay(caches: Instances, targets: readonly PlanTarget[]): Progress {
  const isLaunched = ({ kind, name }: PlanTarget) => {
    const claim = kind === 'claim' ? caches.nodeClaims.get({ name }) : undefined
    return kind === 'node' || (claim !== undefined && isConditionTrue(claim, 'Launched'))
  }
  return {
    kind: 'underWay',
    nodes: targets.length,
    launched: targets.filter(isLaunched).length,
    ready: targets.filter((target) => isReady(caches, target)).length,
  }
}

function isReady({ nodeClaims, nodes }: Instances, { kind, name }: PlanTarget): boolean {
  if (kind === 'node') return nodes.get({ name }) !== undefined
  const claim = nodeClaims.get({ name })
  return claim !== undefined && isConditionTrue(claim, 'Initialized')
}

function detailsOf(
  { nodeClaims, nodes }: Instances,
  targets: readonly PlanTarget[],
  topologyKey: string | undefined,
): Readonly<Record<string, string>> {
  const objects = targets.flatMap(({ kind, name }): readonly KubeObject[] => {
    const claim = kind === 'claim' ? nodeClaims.get({ name }) : undefined
    const node = kind === 'node' ? name : claim?.status?.nodeName
    const found = node === undefined ? undefined : nodes.get({ name: node })
    const object = found ?? claim
    return object === undefined ? [] : [object]
  })
  const valuesOf = (key: string) =>
    [...new Set(objects.flatMap(({ metadata }) => ownValue(metadata.labels, key) ?? []))].toSorted().join(',')
  const all = {
    NodePools: valuesOf(labels.nodePool),
    Zones: valuesOf(labels.zone),
    TopologyDomain: topologyKey === undefined ? '' : valuesOf(normalizedLabel(topologyKey)),
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
}
