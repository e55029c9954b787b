/** How far the search for the room of a ProvisioningRequest has come (gangs.md 7.6). */
import { isConditionTrue, type KubeObject, labels, normalizedLabel, ownValue, type Pod } from '@tenon/api'
import { renderPodReason } from '@tenon/engine'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { groupsOfClaim } from '../../state/pods/group-claims.ts'
import type { PlanTarget } from '../../state/pods/pod-plans.ts'
import type { ServedRequest } from '../../state/pods/request-pods.ts'
import type { KeptPlans } from '../../placement/kept-plans.ts'
import { notedClaims } from '../../placement/planned-pods.ts'
import type { GroupStanding } from '../podgroup/standing.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodes'>
  readonly state: Pick<ClusterState, 'plans' | 'podGroups' | 'requests'>
  readonly standing: GroupStanding
  readonly keptPlans: KeptPlans
}

export type Progress =
  /** Nothing is decided, or what was decided is not carried out yet. */
  | { readonly kind: 'undecided' }
  | { readonly kind: 'underWay'; readonly nodes: number; readonly launched: number; readonly ready: number }
  | {
      readonly kind: 'found'
      /** Whether nodes were launched for it. */
      readonly isLaunched: boolean
      readonly details: Readonly<Record<string, string>>
    }
  | { readonly kind: 'notFound'; readonly message: string }

export class RequestProgress {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  of(served: ServedRequest): Progress {
    const { state, standing } = this.#deps
    const { ref, request, pods } = served
    const { uid = '' } = request.metadata
    const claims = standing
      .claimsOf(ref.id)
      .filter((claim) => groupsOfClaim(claim).some((group) => group.id === ref.id && group.uid === uid))
    const outcome = state.requests.outcomeOf(ref.id)
    const because = outcome?.kind === 'refused' ? renderPodReason(outcome.reason) : undefined
    if (state.podGroups.roundOf(uid) !== undefined) {
      if (claims.length > 0) return this.#underWay(served)
      state.podGroups.endRound(uid)
      const released = 'not all nodes that it needs could be had, and those that could are released'
      return { kind: 'notFound', message: because === undefined ? released : `${released}; ${because}` }
    }
    const isPlanned = pods.every(({ metadata }) => state.plans.get(metadata.uid ?? '') !== undefined)
    if (isPlanned && (outcome?.kind === 'placed' || claims.length > 0)) {
      const targets = this.#targets(served)
      // Where nothing is launched for it, room on nodes that are on their way counts.
      if (served.class === 'atomic' && !targets.every((target) => this.#isReady(target)))
        return this.#underWay(served)
      return { kind: 'found', isLaunched: claims.length > 0, details: this.#details(served, targets) }
    }
    if (claims.length > 0) return this.#underWay(served)
    return because === undefined ? { kind: 'undecided' } : { kind: 'notFound', message: because }
  }

  /** Takes up the plans of the process before this one, as far as claims tell them. */
  resume({ ref, pods }: ServedRequest): void {
    const { keptPlans, standing } = this.#deps
    const byUid = new Map(pods.map((pod) => [pod.metadata.uid ?? '', pod]))
    for (const [uid, name] of notedClaims(standing.claimsOf(ref.id), byUid.keys())) {
      const pod = byUid.get(uid)
      if (pod !== undefined) keptPlans.keep([pod], { kind: 'claim', name })
    }
  }

  /** The Node on which there is to be room for a pod. */
  nodeOf({ metadata }: Pod): string | undefined {
    const target = this.#deps.state.plans.get(metadata.uid ?? '')?.target
    if (target === undefined || target.kind === 'node') return target?.name
    return this.#deps.caches.nodeClaims.get({ name: target.name })?.status?.nodeName
  }

  #underWay(served: ServedRequest): Progress {
    const { caches } = this.#deps
    const targets = this.#targets(served)
    const isLaunched = ({ kind, name }: PlanTarget) => {
      const claim = kind === 'claim' ? caches.nodeClaims.get({ name }) : undefined
      return kind === 'node' || (claim !== undefined && isConditionTrue(claim, 'Launched'))
    }
    return {
      kind: 'underWay',
      nodes: targets.length,
      launched: targets.filter(isLaunched).length,
      ready: targets.filter((target) => this.#isReady(target)).length,
    }
  }

  /** The instances where there is to be room, each once. */
  #targets({ pods }: ServedRequest): readonly PlanTarget[] {
    const targets = new Map<string, PlanTarget>()
    for (const { metadata } of pods) {
      const target = this.#deps.state.plans.get(metadata.uid ?? '')?.target
      if (target !== undefined) targets.set(`${target.kind}/${target.name}`, target)
    }
    return [...targets.values()]
  }

  #isReady({ kind, name }: PlanTarget): boolean {
    const { caches } = this.#deps
    if (kind === 'node') return caches.nodes.get({ name }) !== undefined
    const claim = caches.nodeClaims.get({ name })
    return claim !== undefined && isConditionTrue(claim, 'Initialized')
  }

  #details({ topologyKey }: ServedRequest, targets: readonly PlanTarget[]): Readonly<Record<string, string>> {
    const { caches } = this.#deps
    const objects = targets.flatMap(({ kind, name }): readonly KubeObject[] => {
      const claim = kind === 'claim' ? caches.nodeClaims.get({ name }) : undefined
      const node = kind === 'node' ? name : claim?.status?.nodeName
      const found = node === undefined ? undefined : caches.nodes.get({ name: node })
      const object = found ?? claim
      return object === undefined ? [] : [object]
    })
    const valuesOf = (key: string) =>
      [...new Set(objects.flatMap(({ metadata }) => ownValue(metadata.labels, key) ?? []))]
        .toSorted()
        .join(',')
    const all = {
      NodePools: valuesOf(labels.nodePool),
      Zones: valuesOf(labels.zone),
      TopologyDomain: topologyKey === undefined ? '' : valuesOf(normalizedLabel(topologyKey)),
    }
    return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''))
  }
}
