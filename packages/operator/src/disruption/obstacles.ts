/** What prevents the disruption of a node, whatever the reason (disruption.md 3). */
import { annotations, labels, type NodeClaim } from '@tenon/api'
import type { PoolRules } from '@tenon/provider'
import { type Clock, rfc3339 } from '@tenon/runtime'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'
import { validatePool } from '../state/nodepools/pool-problems.ts'
import { labelsOf, outOfServiceBy, type StateNode } from '../state/nodes/state-node.ts'
import type { BlockingBudgets, PodsOnNodes, PodsToMove } from '../state/pods/pods-to-move.ts'
import { doNotDisrupt, isActive, keyOf } from '../state/pods/pods.ts'
import type { ObstacleCause, StuckReason } from './answers.ts'
import type { Catalogue } from './catalogue.ts'
import { groupsOfClaim } from '../state/pods/group-of-pod.ts'
import { awaitsPods } from './predecessors.ts'
import { openZone } from './zone-order.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly state: Pick<
    ClusterState,
    'isNominated' | 'nominations' | 'podGroups' | 'poolWishes' | 'stateNodes' | 'unreadableNodeText'
  >
  readonly provider: PoolRules
  readonly clock: Clock
}

export interface Obstacle {
  readonly by: ObstacleCause
  readonly text: string
  /** When it ends by itself, in Unix milliseconds; undefined if it does not, or if that is unknown. */
  readonly untilMs?: number
  /** Set if it does not end unless somebody changes a PDB or its workload. */
  readonly stuck?: StuckReason
}

/**
 * Whether protected pods prevent disruption: always (`graceful`), only without a terminationGracePeriod (`eventual`), or
 * never, as for repairs (`repair`), which neither annotations nor pending pods hold up either: the node is broken.
 */
export type DisruptionClass = 'graceful' | 'eventual' | 'repair'

type Obstacles = Generator<Obstacle, undefined, undefined>

const blocked = (by: Obstacle['by'], text: string): Obstacle => ({ by, text })

/** Obstacles of the node and its NodePool, in the order of the checks. */
export function* nodeObstacles(
  deps: Dependencies,
  stateNode: StateNode,
  catalogue: Catalogue,
  disruptionClass: DisruptionClass,
): Obstacles {
  const { node, claim } = stateNode
  if (node === undefined) {
    yield blocked('node', 'the NodeClaim has no Node')
    return
  }
  if (claim !== undefined) yield* stateObstacles(deps, stateNode, claim, disruptionClass)
  const { doNotDisrupt: key } = annotations
  if (disruptionClass !== 'repair' && node.metadata.annotations?.[key] === 'true')
    yield blocked('annotation', `disruption is blocked by annotation (${key}=true)`)
  yield* poolObstacles(deps, stateNode, catalogue, disruptionClass)
}

/** Obstacles in the state of the node, independent of its pods. */
function* stateObstacles(
  deps: Dependencies,
  stateNode: StateNode,
  claim: NodeClaim,
  disruptionClass: DisruptionClass,
): Obstacles {
  const { state } = deps
  const unreadable = state.unreadableNodeText(stateNode)
  if (unreadable !== undefined) yield blocked('node', `the Node cannot be read: ${unreadable}`)
  if (!stateNode.isInitialized) yield blocked('node', 'the Node is not initialized')
  if (stateNode.isMarkedForDeletion) yield blocked('node', 'the Node is being deleted, or about to be')
  const condition = stateNode.node && outOfServiceBy(stateNode.node)
  if (condition !== undefined)
    yield blocked('node', `others take the Node out of service (condition ${condition})`)
  if (disruptionClass === 'repair') return
  if (state.isNominated(stateNode.providerID)) yield blocked('node', 'the Node is kept for a pending pod')
  const hold =
    disruptionClass === 'graceful' ? state.nominations.holdOn(stateNode.node?.metadata.name ?? '') : undefined
  if (hold !== undefined)
    yield {
      ...blocked('node', `a pod is nominated to the Node (Pod=${keyOf(hold.pod.metadata)})`),
      untilMs: hold.untilMs,
    }
  if (disruptionClass === 'graceful' && awaitsPods(deps, claim))
    yield blocked('node', 'the Node is kept for the pods of nodes that it replaces')
  if (disruptionClass === 'graceful' && state.podGroups.isOn)
    for (const { id } of groupsOfClaim(claim))
      yield blocked('node', `the Node is kept for ${id}, which starts as a whole`)
  const { requests } = state.podGroups
  if (requests.isUndecided || requests.areServed) yield* roomObstacles(deps, stateNode)
}

/** Pending pods may be nominated to the node once there is room for them (gangs.md 8, trap 17). */
function* roomObstacles({ state }: Dependencies, stateNode: StateNode): Obstacles {
  const { requests } = state.podGroups
  if (requests.isUndecided)
    yield blocked('node', 'it is not known yet which Nodes are kept for ProvisioningRequests')
  for (const { ref } of requests.keptOn(stateNode))
    yield blocked('node', `the Node has room kept for ProvisioningRequest ${ref.namespace}/${ref.name}`)
}

function* poolObstacles(
  { clock, provider, state }: Dependencies,
  stateNode: StateNode,
  catalogue: Catalogue,
  disruptionClass: DisruptionClass,
): Obstacles {
  const name = labelsOf(stateNode)[labels.nodePool] ?? ''
  const listed = catalogue.get(name)
  if (name === '') yield blocked('nodePool', `required label is missing (label=${labels.nodePool})`)
  else if (listed === undefined || listed.types.size === 0)
    yield blocked('nodePool', `NodePool not found (NodePool=${name})`)
  else {
    const [problem] = validatePool(listed.pool, provider)
    if (problem !== undefined)
      yield blocked('nodePool', `the NodePool is not valid (NodePool=${name}): ${problem}`)
    if (disruptionClass === 'repair' || state.poolWishes(listed.pool).disruptZones === undefined) return
    const zone = openZone(state.stateNodes(), name, clock.now())
    if (zone === undefined || zone !== (labelsOf(stateNode)[labels.zone] ?? ''))
      yield blocked(
        'nodePool',
        `nodes of NodePool ${name} are disrupted in one zone at a time (annotation tenon.sh/disrupt-zones), now ${zone === undefined ? 'in none, as work has begun in several' : `in ${zone}`}`,
      )
  }
}

/**
 * Pods that prevent disruption.
 * @param blocking pods held by PodDisruptionBudgets.
 */
export function* podObstacles(
  { annotated }: Pick<PodsToMove, 'annotated'>,
  blocking: Iterable<BlockingBudgets>,
  podsOnNodes: Pick<PodsOnNodes, 'outlookOf' | 'windows'>,
  nowMs: number,
): Obstacles {
  for (const pod of annotated) {
    const protection = isActive(pod) ? doNotDisrupt(pod, nowMs, podsOnNodes.windows) : undefined
    if (protection?.kind !== 'active') continue
    const { by, untilMs } = protection
    const name = keyOf(pod.metadata)
    const text =
      by === annotations.doNotDisrupt
        ? `a pod is annotated with ${by} (Pod=${name})`
        : `a pod is outside its disruption windows (Pod=${name}, annotation ${by}); the next one begins at ${rfc3339(untilMs)}`
    yield {
      ...blocked('pod', text),
      ...(Number.isFinite(untilMs) && { untilMs }),
    }
  }
  for (const { kind, pod, budgets, covering } of blocking) {
    const names = budgets.join(',')
    const [outlook] = covering.map((budget) => podsOnNodes.outlookOf(budget))
    const by = 'podDisruptionBudget'
    if (kind === 'several') {
      const text = `a pod has several PDBs, which is not supported (Pod=${pod}, PDBs=${names})`
      yield { ...blocked(by, text), ...(outlook && { stuck: 'several_budgets' }) }
    } else {
      const text = `a PDB prevents pod evictions (PDB=${names})${outlook === undefined ? '' : `: it ${outlook.text}`}`
      yield { ...blocked(by, text), ...(outlook?.isNever === true && { stuck: 'never_allows' }) }
    }
  }
}
