/** In which order the nodes of a decision open (planned-placement.md). */
import {
  difference,
  fits,
  matchesSelector,
  parseResources,
  type Pod,
  type PodAffinityTerm,
  podRequests,
} from '@tenon/api'
import { hardSpreadOf } from '@tenon/engine'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

export interface OpeningOrder {
  /**
   * Claims whose Nodes open before all others: they hold pods that others must be near, each of their pods can be bound
   * independently, and no pod of another Node that others depend on would fit.
   */
  readonly first: ReadonlySet<string>
  /** Position of each claim among those that open together, from 0, by the pod that the scheduler tries first. */
  readonly rank: ReadonlyMap<string, number>
}

/** @param batch names of the claims of one decision. */
export function openingOrder(
  state: {
    readonly plans: Pick<ClusterState['plans'], 'podsOf'>
    readonly pods: Pick<ClusterState['pods'], 'unplaced' | 'allUnplaced'>
  } & Pick<ClusterState, 'nodeOf'>,
  caches: { readonly nodeClaims: Pick<Caches['nodeClaims'], 'get'> },
  batch: ReadonlySet<string>,
): OpeningOrder {
  const claimOf = new Map(
    [...batch].flatMap((name) => state.plans.podsOf({ kind: 'claim', name }).map((uid) => [uid, name])),
  )
  const waiting = new Map<string, Pod[]>([...batch].map((name) => [name, []]))
  const rank = new Map<string, number>()
  // The scheduler's queue has the same order.
  for (const pod of state.pods.allUnplaced()) {
    const name = claimOf.get(pod.metadata.uid ?? '')
    if (name === undefined) continue
    if (!rank.has(name)) rank.set(name, rank.size)
    waiting.get(name)?.push(pod)
  }
  const rules = new Rules([...waiting.values()].flat())
  const movers = [...waiting].flatMap(([name, pods]) =>
    pods
      .filter((pod) => rules.moves(pod))
      .map((pod) => ({ name, requests: podRequests(pod.spec, pod.status) })),
  )
  const first = [...waiting].filter(([name, pods]) => {
    if (!pods.some((pod) => rules.isAnchor(pod)) || pods.some((pod) => rules.isConditional(pod))) return false
    const claim = caches.nodeClaims.get({ name })
    const node = claim === undefined ? undefined : state.nodeOf(claim)
    const room = pods.reduce(
      (left, { spec, status }) => difference(left, podRequests(spec, status)),
      parseResources(node?.status?.allocatable),
    )
    return !movers.some((mover) => mover.name !== name && fits(mover.requests, room))
  })
  return { first: new Set(first.map(([name]) => name)), rank }
}

/** Required affinity and spread between the pods of a batch. */
class Rules {
  /** Distinct required affinity terms, with the namespace of their pod. */
  readonly #terms: readonly { readonly term: PodAffinityTerm; readonly namespace: string }[]

  constructor(pods: readonly Pod[]) {
    const terms = pods.flatMap((pod) =>
      affinityOf(pod).map((term) => ({ term, namespace: pod.metadata.namespace ?? '' })),
    )
    this.#terms = [...new Map(terms.map((each) => [JSON.stringify(each), each])).values()]
  }

  /** Whether some pod must be near this one. */
  isAnchor(pod: Pod): boolean {
    return this.#terms.some(({ term, namespace }) => selects(term, namespace, pod))
  }

  /** Whether the scheduler may reject the pod on its planned node until others are bound. */
  isConditional(pod: Pod): boolean {
    const { namespace = '' } = pod.metadata
    return hardSpreadOf(pod).length > 0 || affinityOf(pod).some((term) => !selects(term, namespace, pod))
  }

  /** Whether other pods depend on where this one goes. */
  moves(pod: Pod): boolean {
    const apart = pod.spec.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []
    return (
      apart.length > 0 || hardSpreadOf(pod).length > 0 || affinityOf(pod).length > 0 || this.isAnchor(pod)
    )
  }
}

const affinityOf = ({ spec }: Pod): readonly PodAffinityTerm[] =>
  spec.affinity?.podAffinity?.requiredDuringSchedulingIgnoredDuringExecution ?? []

/** A namespaceSelector is treated as selecting all namespaces. */
function selects(term: PodAffinityTerm, namespace: string, pod: Pod): boolean {
  const namespaces = term.namespaces ?? []
  const isInReach =
    term.namespaceSelector !== undefined ||
    (namespaces.length === 0 ? [namespace] : namespaces).includes(pod.metadata.namespace ?? '')
  return (
    isInReach &&
    term.labelSelector !== undefined &&
    matchesSelector(term.labelSelector, pod.metadata.labels ?? {})
  )
}
