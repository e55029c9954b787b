/** Candidates: nodes that may be disrupted, whatever the reason (disruption.md 3, 4). */
import { type Clock, perObject } from '@tenon/runtime'
import type { EventRecorder } from '@tenon/kube'
import type { PoolRules } from '@tenon/provider'
import {
  type InstanceType,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  type Pod,
  type PricePerHour,
  requestsOf,
  type Resources,
} from '@tenon/api'
import { balanceCost } from '../cloud/zone-balance.ts'
import { protectionNotice } from '../node/termination/eviction-queue.ts'
import { consolidateAfterMs } from '../state/nodepools/managed-pool.ts'
import { isActive } from '../state/pods/pods.ts'
import type { PodsToMove } from '../state/pods/pods-to-move.ts'
import { labelsOf, type StateNode, transitionMs } from '../state/nodes/state-node.ts'
import { type Catalogue, nodePrice } from './catalogue.ts'
import { groupObstacles, type GroupUnit, groupUnits, unitObstacle } from './group-units.ts'
import { type DisruptionClass, nodeObstacles, type Obstacle, podObstacles } from './obstacles.ts'
import type { Caches } from '../state/caches.ts'
import { policyOf, type Settings } from '../settings.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<
    ClusterState,
    | 'isNominated'
    | 'nominations'
    | 'podGroups'
    | 'podsOnNodes'
    | 'poolWishes'
    | 'predictions'
    | 'stateNodes'
    | 'unreadableNodeText'
    | 'windows'
  >
  readonly provider: PoolRules
  readonly events: EventRecorder
  readonly clock: Clock
  readonly settings: Pick<Settings, 'compatibility'>
}

/** Whether nodes with pods of a group that must run together are examined one by one, or all of them as a unit. */
export type GroupScope = 'alone' | 'together'

/** Which nodes a method asks for. */
export interface Scope {
  readonly disruptionClass: DisruptionClass
  /** Default `alone`: a group of pods can prevent the removal of a single one of its nodes. */
  readonly groups?: GroupScope
  /** The instances to examine; undefined: all. */
  readonly among?: (all: readonly StateNode[]) => readonly StateNode[]
}

/** Instances examined between two yields to the event loop. */
const nodesPerStep = 16
/** How often a node that leaves says so. */
const leavingEventMs = 5 * 60_000
/** Longest time until a candidate is examined again. */
const nextLookMs = 5 * 60_000

/** A node that may be disrupted, with what decisions need. */
export type Candidate = StateNode & {
  readonly node: Node
  readonly claim: NodeClaim
  readonly pool: NodePool
  /** Undefined if the NodePool does not offer the node's instance type. */
  readonly type: InstanceType | undefined
  /** Pods to reschedule if the node goes. */
  readonly pods: readonly Pod[]
  /** Those of `pods` that may move. */
  readonly movable: readonly Pod[]
  /** Requests that each movable pod will have when it is created again. */
  readonly requests: readonly Resources[]
  readonly pricePerHour: PricePerHour
  /** Cost of evicting its pods; at least 1. */
  readonly disruptionCost: number
  /** Whether nodes that are still under `consolidateAfter` may soon take its pods, as it became consolidatable so recently. */
  readonly waitsForBusyNodes: boolean
}

export class CandidateFinder {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Finds the nodes that may be disrupted, in steps and in order of name; events say why others may not.
   * @param isWanted whether an instance is examined at all.
   */
  *find(
    catalogue: Catalogue,
    scope: Scope,
    isWanted: (stateNode: StateNode) => boolean,
  ): Generator<undefined, readonly Candidate[], undefined> {
    const { events, settings, state } = this.#deps
    const ofLeaving = policyOf(settings).repeatsLess ? { dedupeTtlMs: leavingEventMs } : {}
    const candidates: Candidate[] = []
    const all = state.stateNodes()
    for (const [at, stateNode] of (scope.among?.(all) ?? all).entries()) {
      if (at % nodesPerStep === 0) yield
      const found = isWanted(stateNode) ? candidateOf(this.#deps, stateNode, catalogue, scope) : undefined
      if (found === undefined) continue
      if ('by' in found)
        reportBlocked(events, stateNode, found.text, stateNode.isMarkedForDeletion ? ofLeaving : {})
      else candidates.push(found)
    }
    return candidates
  }

  /** Why a node cannot go together with the others of its unit, a clause; undefined if it can. */
  unitObstacle(
    nodeName: string,
    unit: GroupUnit,
    catalogue: Catalogue,
    disruptionClass: DisruptionClass,
  ): string | undefined {
    const stateNodes = byNodeName(this.#deps.state.stateNodes())
    return unitObstacle(unit, nodeName, (other) => {
      const stateNode = stateNodes.get(other)
      if (stateNode?.claim === undefined) return 'it has no NodeClaim'
      const { value: own } = nodeObstacles(this.#deps, stateNode, catalogue, disruptionClass).next()
      return own?.text ?? heldByPods(this.#deps, stateNode, disruptionClass).next().value?.text
    })
  }

  /** Everything that prevents graceful disruption of a node with a claim, in the order of the checks. */
  *obstacles(stateNode: StateNode, catalogue: Catalogue): Generator<Obstacle, undefined, undefined> {
    const { clock, state } = this.#deps
    if (stateNode.claim === undefined) return
    yield* nodeObstacles(this.#deps, stateNode, catalogue, 'graceful')
    const name = stateNode.node?.metadata.name
    if (name === undefined) return
    const { podsOnNodes } = state
    yield* podObstacles(podsOnNodes.of(name), podsOnNodes.held(name), podsOnNodes, clock.now())
    const unit = groupUnits(state).get(name)
    if (unit === undefined) yield* groupObstacles(state, name)
    else {
      const text = this.unitObstacle(name, unit, catalogue, 'graceful')
      if (text !== undefined) yield { by: 'pod', text }
    }
  }

  /** The node as a candidate, even if something prevents its disruption; undefined if its NodePool is unknown. */
  described(stateNode: StateNode, catalogue: Catalogue): Candidate | undefined {
    return describedBy(this.#deps, stateNode, catalogue)
  }
}

function candidateOf(
  deps: Dependencies,
  stateNode: StateNode,
  catalogue: Catalogue,
  { disruptionClass, groups = 'alone' }: Scope,
): Candidate | Obstacle | undefined {
  if (stateNode.claim === undefined) return undefined
  const { value: against } = nodeObstacles(deps, stateNode, catalogue, disruptionClass).next()
  if (against !== undefined) return against
  if (disruptionClass === 'repair') return describedBy(deps, stateNode, catalogue)
  const name = stateNode.node?.metadata.name ?? ''
  if (!endsByItself(stateNode.claim, disruptionClass)) reportProtected(deps, deps.state.podsOnNodes.of(name))
  const { value: held } = heldByPods(deps, stateNode, disruptionClass).next()
  if (held !== undefined) return held
  if (groups === 'alone') {
    const { value: grouped } = groupObstacles(deps.state, name).next()
    if (grouped !== undefined) return grouped
  }
  return describedBy(deps, stateNode, catalogue)
}

/** Pods that prevent disruption, unless a termination grace period of the claim ends them anyway. */
function* heldByPods(
  { clock, state }: Dependencies,
  { claim, node }: StateNode,
  disruptionClass: DisruptionClass,
): Generator<Obstacle, undefined, undefined> {
  if (claim === undefined || endsByItself(claim, disruptionClass)) return
  const found = state.podsOnNodes.of(node?.metadata.name ?? '')
  if (found.annotated.length === 0 && found.blocking === undefined) return
  const blocking = found.blocking === undefined ? [] : [found.blocking]
  yield* podObstacles(found, blocking, state.podsOnNodes, clock.now())
}

/** Candidates of the last pass. Most stay the same object, so that comparing them is cheap. */
const described = new WeakMap<
  StateNode,
  {
    readonly candidate: Candidate
    /** Version of the predicted requests. */
    readonly predictions: number
  }
>()

/** @returns undefined if the NodePool of the node is unknown. */
function describedBy(deps: Dependencies, stateNode: StateNode, catalogue: Catalogue): Candidate | undefined {
  const { node, claim } = stateNode
  const tags = labelsOf(stateNode)
  const listed = catalogue.get(tags[labels.nodePool] ?? '')
  if (node === undefined || claim === undefined || listed === undefined) return undefined
  const { pods, movable, disruptionCost } = deps.state.podsOnNodes.of(node.metadata.name)
  const { pool } = listed
  const type = listed.types.get(tags[labels.instanceType] ?? '')
  const requestsOfRemade = (pod: Pod) => requestsOf(deps.state.predictions.remade(pod))
  const waitsForBusyNodes = isNewlyQuiet(deps, claim, pool)
  const { version: predictions } = deps.state.predictions
  const known = described.get(stateNode)
  const last = known?.candidate
  if (
    last?.pool === pool &&
    last.type === type &&
    last.pods === pods &&
    last.movable === movable &&
    last.disruptionCost === disruptionCost &&
    last.waitsForBusyNodes === waitsForBusyNodes &&
    (known?.predictions === predictions ||
      movable.every((pod, at) => requestsOfRemade(pod) === last.requests[at]))
  )
    return last
  const price = nodePrice(type, tags)
  const pricePerHour = price && Math.max(0, price - balanceCost(claim, deps.state.poolWishes(pool)))
  const own = { node, claim, pool, type, pods, movable, requests: movable.map(requestsOfRemade) }
  const candidate = { ...stateNode, ...own, pricePerHour, disruptionCost, waitsForBusyNodes }
  described.set(stateNode, { candidate, predictions })
  return candidate
}

/** The instance of each Node, by its name. */
const byNodeName = perObject(
  (stateNodes: readonly StateNode[]): ReadonlyMap<string, StateNode> =>
    new Map(
      stateNodes.flatMap((stateNode) =>
        stateNode.node === undefined ? [] : [[stateNode.node.metadata.name, stateNode]],
      ),
    ),
)

/** Whether the claim's termination grace period ends its pods, so that none can hold the node for good. */
export function endsByItself({ spec }: NodeClaim, disruptionClass: DisruptionClass): boolean {
  return disruptionClass === 'eventual' && spec.terminationGracePeriod !== undefined
}

/** Events about annotations that protect a pod until a given time. */
function reportProtected({ clock, events }: Dependencies, { annotated }: PodsToMove): void {
  for (const pod of annotated) {
    const notice = isActive(pod) ? protectionNotice(pod, clock.now()) : undefined
    if (notice !== undefined) events.record({ object: pod, ...notice })
  }
}

/** When the claim became consolidatable, Unix milliseconds; null if it is not. */
const consolidatableSinceMs = perObject((claim: NodeClaim) => transitionMs(claim, 'Consolidatable') ?? null)

/** Whether the node became consolidatable so recently that busy nodes of its NodePool may follow. */
function isNewlyQuiet({ clock }: Dependencies, claim: NodeClaim, pool: NodePool): boolean {
  const sinceMs = consolidatableSinceMs(claim)
  return sinceMs !== null && clock.now() - sinceMs < consolidateAfterMs(pool) + nextLookMs
}

/** Whether the node has no pod that would have to be rescheduled. */
export function isEmpty({ pods }: Candidate): boolean {
  return pods.length === 0
}

/**
 * Records a DisruptionBlocked event on a Node and its claim.
 * @param repeats when such an event is recorded again; by default after two minutes, whatever the reason.
 */
export function reportBlocked(
  events: EventRecorder,
  { node, claim }: StateNode,
  reason: string,
  repeats: { readonly values?: readonly string[]; readonly dedupeTtlMs?: number } = {},
): void {
  const { values = [], dedupeTtlMs } = repeats
  for (const object of [node, claim]) {
    if (object === undefined) continue
    events.record({
      object,
      type: 'Normal',
      reason: 'DisruptionBlocked',
      message: reason.charAt(0).toUpperCase() + reason.slice(1),
      dedupe: [object.metadata.uid ?? object.metadata.name, ...values],
      ...(dedupeTtlMs !== undefined && { dedupeTtlMs }),
    })
  }
}
