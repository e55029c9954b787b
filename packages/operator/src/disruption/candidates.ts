/** Which nodes may be disrupted at all, whatever the reason (disruption.md 3, 4). */
import type { Clock } from '@tenon/runtime'
import type { EventRecorder } from '@tenon/kube'
import type { PoolRules } from '@tenon/provider'
import {
  annotations,
  type InstanceType,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  type Pod,
  type PricePerHour,
} from '@tenon/api'
import { protectionNotice } from './protection-notice.ts'
import { consolidateAfterMs } from '../cluster/nodes/consolidate-after.ts'
import { doNotDisrupt, isActive, keyOf } from '../cluster/pods/pods.ts'
import { validatePool } from '../cluster/nodepools/pool-problems.ts'
import type { PodsToMove } from '../cluster/pods/pods-to-move.ts'
import { labelsOf, type StateNode, transitionMs } from '../cluster/nodes/state-node.ts'
import type { ObstacleCause } from './answers.ts'
import { type Catalogue, nodePrice } from './catalogue.ts'
import { awaitsPods } from './predecessors.ts'
import type { Caches } from '../cluster/caches.ts'
import type { ClusterState } from '../cluster/cluster-state.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<ClusterState, 'isNominated' | 'podsOnNodes' | 'stateNodes' | 'unreadableNodeText'>
  readonly provider: PoolRules
  readonly events: EventRecorder
  readonly clock: Clock
}

/** Nothing stays unlooked at for longer. */
const nextLookMs = 5 * 60_000

/** A node that may go, with what decisions need to know of it. */
export type Candidate = StateNode & {
  readonly node: Node
  readonly claim: NodeClaim
  readonly pool: NodePool
  /** Undefined when the NodePool does not sell the type that the node says it is. */
  readonly type: InstanceType | undefined
  /** Pods that need another place when the node goes. */
  readonly pods: readonly Pod[]
  /** Those of them that nothing keeps where they are. */
  readonly movable: readonly Pod[]
  readonly pricePerHour: PricePerHour
  /** What moving its pods costs; 1 when nothing on it costs anything. */
  readonly disruptionCost: number
  /** Whether it has become consolidatable so lately that others may soon be quiet and take its pods. */
  readonly waitsForBusyNodes: boolean
}

/**
 * How pods count that must not be touched: always, or (`eventual`) not once the claim's own
 * terminationGracePeriod sees to it that the node goes in the end.
 */
export type DisruptionClass = 'graceful' | 'eventual'

/** Finds nodes that may be disrupted. */
export class CandidateFinder {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * Finds in steps the nodes that may be disrupted, in order of name; for the others an event says why not.
   * @param isWanted whether an instance is looked at at all.
   */
  find(
    catalogue: Catalogue,
    disruptionClass: DisruptionClass,
    isWanted: (stateNode: StateNode) => boolean,
  ): Generator<undefined, readonly Candidate[], undefined> {
    return findCandidates(this.#deps, catalogue, disruptionClass, isWanted)
  }

  /** The candidate, why the node is none, or nothing when nobody needs to be told. */
  of(
    stateNode: StateNode,
    catalogue: Catalogue,
    disruptionClass: DisruptionClass,
  ): Candidate | Obstacle | undefined {
    return candidateOf(this.#deps, stateNode, catalogue, disruptionClass)
  }
}

function* findCandidates(
  deps: Dependencies,
  catalogue: Catalogue,
  disruptionClass: DisruptionClass,
  isWanted: (stateNode: StateNode) => boolean,
): Generator<undefined, readonly Candidate[], undefined> {
  const candidates: Candidate[] = []
  for (const stateNode of deps.state.stateNodes()) {
    yield
    const found = isWanted(stateNode) ? candidateOf(deps, stateNode, catalogue, disruptionClass) : undefined
    if (found === undefined) continue
    if ('by' in found) tellBlocked(deps.events, stateNode, found.text)
    else candidates.push(found)
  }
  return candidates
}

/** What keeps a node from being disrupted. */
export interface Obstacle {
  readonly by: ObstacleCause
  readonly text: string
}

const blocked = (by: Obstacle['by'], text: string): Obstacle => ({ by, text })

function candidateOf(
  deps: Dependencies,
  stateNode: StateNode,
  catalogue: Catalogue,
  disruptionClass: DisruptionClass,
): Candidate | Obstacle | undefined {
  const { node, claim } = stateNode
  if (claim === undefined) return undefined
  if (node === undefined) return blocked('node', 'the NodeClaim has no Node')
  const busy = ownObstacle(deps, stateNode, claim, disruptionClass)
  if (busy !== undefined) return busy
  const { doNotDisrupt: key } = annotations
  if (node.metadata.annotations?.[key] === 'true')
    return blocked('annotation', `disruption is blocked by annotation (${key}=true)`)
  const tags = labelsOf(stateNode)
  const poolName = tags[labels.nodePool] ?? ''
  if (poolName === '') return blocked('nodePool', `required label is missing (label=${labels.nodePool})`)
  const listed = catalogue.get(poolName)
  if (listed === undefined || listed.types.size === 0)
    return blocked('nodePool', `NodePool not found (NodePool=${poolName})`)
  const [problem] = validatePool(listed.pool, deps.provider)
  if (problem !== undefined)
    return blocked('nodePool', `the NodePool is not valid (NodePool=${poolName}): ${problem}`)
  const found = deps.state.podsOnNodes.of(node.metadata.name)
  const goesInTheEnd = disruptionClass === 'eventual' && claim.spec.terminationGracePeriod !== undefined
  const held = goesInTheEnd ? undefined : obstacleOfPods(deps, found)
  if (held !== undefined) return held
  const { pods, movable, disruptionCost } = found
  const type = listed.types.get(tags[labels.instanceType] ?? '')
  return {
    ...stateNode,
    node,
    claim,
    pool: listed.pool,
    type,
    pods,
    movable,
    pricePerHour: nodePrice(type, tags),
    disruptionCost,
    waitsForBusyNodes: isNewlyQuiet(deps, claim, listed.pool),
  }
}

/** Whether the node has been consolidatable for no longer than it takes busy nodes of its NodePool to get there. */
function isNewlyQuiet({ clock }: Dependencies, claim: NodeClaim, pool: NodePool): boolean {
  const sinceMs = transitionMs(claim, 'Consolidatable')
  return sinceMs !== undefined && clock.now() - sinceMs < consolidateAfterMs(pool) + nextLookMs
}

/** What the state of a node says against it, whatever is on it. */
function ownObstacle(
  deps: Dependencies,
  stateNode: StateNode,
  claim: NodeClaim,
  disruptionClass: DisruptionClass,
): Obstacle | undefined {
  const unreadable = deps.state.unreadableNodeText(stateNode)
  if (unreadable !== undefined) return blocked('node', `the Node cannot be read: ${unreadable}`)
  if (!stateNode.isInitialized) return blocked('node', 'the Node is not initialized')
  if (stateNode.isMarkedForDeletion) return blocked('node', 'the Node is being deleted, or about to be')
  if (deps.state.isNominated(stateNode.providerID))
    return blocked('node', 'the Node is kept for a pending pod')
  return disruptionClass === 'graceful' && awaitsPods(deps, claim)
    ? blocked('node', 'the Node is kept for the pods of nodes that it replaces')
    : undefined
}

/** The first pod that must not be touched; users are told of annotations that say until when. */
function obstacleOfPods(
  { clock, events }: Dependencies,
  { annotated, blocking }: PodsToMove,
): Obstacle | undefined {
  const now = clock.now()
  const active = annotated.filter(isActive)
  for (const pod of active) {
    const notice = protectionNotice(pod, now)
    if (notice !== undefined) events.record({ object: pod, ...notice })
  }
  const held = active.find((pod) => doNotDisrupt(pod, now).kind === 'active')
  if (held !== undefined)
    return blocked('pod', `a pod is annotated with ${annotations.doNotDisrupt} (Pod=${keyOf(held.metadata)})`)
  if (blocking === undefined) return undefined
  const names = blocking.budgets.join(',')
  return blocked(
    'podDisruptionBudget',
    blocking.kind === 'several'
      ? `a pod has several PDBs, which is not supported (Pod=${blocking.pod}, PDBs=${names})`
      : `a PDB prevents pod evictions (PDB=${names})`,
  )
}

/** Whether the node holds no pod that needs another place, whatever moving one costs. */
export function isEmpty({ pods }: Candidate): boolean {
  return pods.length === 0
}

/** Says on the Node and its claim why they stay. */
export function tellBlocked(events: EventRecorder, { node, claim }: StateNode, reason: string): void {
  for (const object of [node, claim]) {
    if (object === undefined) continue
    events.record({
      object,
      type: 'Normal',
      reason: 'DisruptionBlocked',
      message: reason.charAt(0).toUpperCase() + reason.slice(1),
      dedupe: [object.metadata.uid ?? object.metadata.name],
    })
  }
}
