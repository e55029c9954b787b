/** The effect of changes on a cluster (ask.md 5). */
import {
  isConditionTrue,
  type KubeObject,
  labels,
  type NodeClaim,
  type NodePool,
  ownValue,
  type Pod,
  type PricePerHour,
  sumOfPrices,
} from '@tenon/api'
import type { NewClaim, SchedulingResult } from '@tenon/engine'
import { isReschedulable } from '@tenon/operator/objects'
import { type PendingDecision, staticDrift } from '@tenon/operator/questions'
import { budgetOf, type PoolBudget } from '../explain/node-pool.ts'
import { priceOfLabels } from '../play/catalogue.ts'
import type { Snapshot, SnapshotOrigin } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'

/** New nodes of the same kind. */
export interface AddedNodes {
  readonly nodePool: string
  /** The cheapest type that fits the pods. */
  readonly instanceType: string
  readonly count: number
  /** Per node; undefined if unknown. */
  readonly pricePerHour: PricePerHour
  /** Pods that would run on them. */
  readonly pods: number
}

/** A node that would be removed. */
export interface LeavingNode {
  readonly nodeClaim: string
  readonly node?: string
  readonly nodePool: string
  readonly instanceType: string
  readonly pricePerHour: PricePerHour
  /** Why it drifted; absent if it is removed for another reason. */
  readonly reason?: string
}

/** Price per hour of all nodes. */
export interface SimulatedPrice {
  readonly pricePerHour: number
  /** Nodes of unknown price. */
  readonly unpriced: number
}

/** How fast the drifted nodes of a NodePool may be replaced. */
export interface DriftBudget extends PoolBudget {
  readonly nodePool: string
}

/** Pending pods, new nodes and price after everything has settled. */
interface Outcome {
  readonly waiting: readonly string[]
  readonly added: readonly AddedNodes[]
  readonly price: SimulatedPrice
}

export interface Simulation {
  readonly takenAtMs: number
  readonly origin: SnapshotOrigin
  readonly priceUnit?: string
  /** `namespace/name` of pods that are pending before the change and run after it; and vice versa. */
  readonly podsThatRun: readonly string[]
  readonly podsThatWait: readonly string[]
  /** Pods on removed nodes that would run on others. */
  readonly podsThatMove: readonly string[]
  /** Pods that are pending with and without the change. */
  readonly podsStillWaiting: number
  readonly nodes: {
    readonly kept: number
    readonly added: readonly AddedNodes[]
    /** New nodes that are launched without the change, too. */
    readonly addedAnyway: readonly AddedNodes[]
    /** Nodes that drifted from their NodePool and are replaced. */
    readonly drifted: readonly LeavingNode[]
    /** Nodes that are deleted, or whose NodePool is. */
    readonly removed: readonly LeavingNode[]
  }
  /** Of the NodePools with drifted nodes, after the change; by name. */
  readonly budgets: readonly DriftBudget[]
  /** Of the nodes that are there, without those that pending pods will get anyway. */
  readonly priceBefore: SimulatedPrice
  readonly priceAfter: SimulatedPrice
  /** Whether the change has no effect. */
  readonly changesNothing: boolean
}

/**
 * Compares a cluster with itself after changes, once all immediate effects have happened. Consolidation is not
 * included.
 */
export async function simulate(before: Snapshot, after: Snapshot): Promise<Simulation> {
  const wasDrifting = drifting(before)
  const drifts = drifting(after).filter(
    ({ nodeClaim }) => !wasDrifting.some((each) => each.nodeClaim === nodeClaim),
  )
  const removed = leaving(after).filter(
    (each) => !leaving(before).some((other) => other.nodeClaim === each.nodeClaim),
  )
  const base = await settled(before, [])
  const changed = await settled(after, drifts)
  const had = new Set(base.waiting)
  const has = new Set(changed.waiting)
  const known = new Set(podsIn(before))
  const there = new Set(podsIn(after))
  const { priceUnit } = before.cloud
  const going = new Set([...drifts, ...removed].map(({ nodeClaim }) => nodeClaim))
  const kept = claimsIn(after).filter(({ metadata }) => !going.has(metadata.name)).length
  const isSame = JSON.stringify(base.added) === JSON.stringify(changed.added)
  const podsThatRun = [...had].filter((pod) => !has.has(pod) && there.has(pod))
  const newPods = [...there].filter((pod) => !known.has(pod))
  const podsThatWait = [...has].filter((pod) => !had.has(pod))
  return {
    takenAtMs: before.takenAtMs,
    origin: before.origin,
    ...(priceUnit !== undefined && { priceUnit }),
    podsThatRun: [...podsThatRun, ...newPods.filter((pod) => !has.has(pod))],
    podsThatWait,
    podsThatMove: podsOn(after, [...drifts, ...removed]).filter((pod) => !has.has(pod)),
    podsStillWaiting: changed.waiting.length - podsThatWait.length,
    nodes: { kept, added: changed.added, addedAnyway: base.added, drifted: drifts, removed },
    budgets: await driftBudgets(after, drifts),
    priceBefore: priceOfNow(before),
    priceAfter: changed.price,
    changesNothing:
      isSame &&
      drifts.length + removed.length + podsThatRun.length + podsThatWait.length + newPods.length === 0 &&
      known.size === there.size,
  }
}

async function settled(snapshot: Snapshot, drifted: readonly LeavingNode[]): Promise<Outcome> {
  const leavingNames = new Set(drifted.map(({ nodeClaim }) => nodeClaim))
  const marked = claimsIn(snapshot).flatMap(({ metadata, status }) =>
    leavingNames.has(metadata.name) && status?.providerID !== undefined ? [status.providerID] : [],
  )
  const memory = { ...snapshot.memory, marked: [...snapshot.memory.marked, ...marked] }
  const study = await Study.open({ ...snapshot, memory })
  const { input, result } = await study.decide()
  await study.close()
  const prices = claimsIn(snapshot)
    .filter(
      (claim) => !leavingNames.has(claim.metadata.name) && claim.metadata.deletionTimestamp === undefined,
    )
    .map((claim) => priceOf(snapshot, claim))
  const launched = [...result.claims, ...result.deferred.map(({ claim }) => claim)]
  return {
    waiting: waitingIn(input, result).map(nameOf),
    added: gathered(launched),
    price: sumOfPrices([...prices, ...launched.map(({ pricePerHour }) => pricePerHour)]),
  }
}

function priceOfNow(snapshot: Snapshot): SimulatedPrice {
  const staying = claimsIn(snapshot).filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  return sumOfPrices(staying.map((claim) => priceOf(snapshot, claim)))
}

/** The budgets before the first drifted node is removed. */
async function driftBudgets(
  after: Snapshot,
  drifted: readonly LeavingNode[],
): Promise<readonly DriftBudget[]> {
  if (drifted.length === 0) return []
  const study = await Study.open(after)
  const names = [...new Set(drifted.map(({ nodePool }) => nodePool))].toSorted()
  const budgets = names.flatMap((nodePool) => {
    const pool = study.operator.caches.nodePools.get({ name: nodePool })
    return pool === undefined ? [] : [{ nodePool, ...budgetOf(study, pool, 'Drifted') }]
  })
  await study.close()
  return budgets
}

function waitingIn(input: PendingDecision['input'], result: SchedulingResult): readonly Pod[] {
  const leftOut = [...input.ignored.filter(({ isSilent }) => !isSilent), ...input.refused]
  return [...result.failures, ...leftOut].map(({ pod }) => pod).concat(result.undecided)
}

export function gathered(claims: readonly NewClaim[]): readonly AddedNodes[] {
  const groups = Map.groupBy(claims, ({ nodePool, instanceTypes }) => `${nodePool}/${instanceTypes[0] ?? ''}`)
  return Array.from(groups.values(), (alike): AddedNodes => {
    const [first] = alike
    return {
      nodePool: first?.nodePool ?? '',
      instanceType: first?.instanceTypes[0] ?? '',
      count: alike.length,
      pricePerHour: first?.pricePerHour,
      pods: alike.reduce((sum, { pods }) => sum + pods.length, 0),
    }
  }).toSorted((a, b) => (`${a.nodePool}/${a.instanceType}` < `${b.nodePool}/${b.instanceType}` ? -1 : 1))
}

/** Pods that need another node when these are removed. */
function podsOn({ objects }: Snapshot, nodes: readonly LeavingNode[]): readonly string[] {
  const names = new Set(nodes.map(({ node }) => node))
  return objects
    .filter(isPod)
    .filter((pod) => pod.spec.nodeName !== undefined && names.has(pod.spec.nodeName) && isReschedulable(pod))
    .map(nameOf)
}

/** Nodes that drifted from their NodePool. */
function drifting(snapshot: Snapshot): readonly LeavingNode[] {
  const pools = new Map(snapshot.objects.filter(isPool).map((pool) => [pool.metadata.name, pool]))
  return claimsIn(snapshot).flatMap((claim) => {
    if (claim.metadata.deletionTimestamp !== undefined) return []
    const pool = pools.get(poolOf(claim))
    const known = isConditionTrue(claim, 'Drifted') ? 'Drifted' : undefined
    const reason = pool === undefined ? undefined : (staticDrift(claim, pool) ?? known)
    return reason === undefined ? [] : [{ ...leavingNode(snapshot, claim), reason }]
  })
}

function leaving(snapshot: Snapshot): readonly LeavingNode[] {
  return claimsIn(snapshot)
    .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
    .map((claim) => leavingNode(snapshot, claim))
}

function leavingNode(snapshot: Snapshot, claim: NodeClaim): LeavingNode {
  const { nodeName } = claim.status ?? {}
  return {
    nodeClaim: claim.metadata.name,
    ...(nodeName !== undefined && { node: nodeName }),
    nodePool: poolOf(claim),
    instanceType: ownValue(claim.metadata.labels, labels.instanceType) ?? '',
    pricePerHour: priceOf(snapshot, claim),
  }
}

function priceOf({ catalogues }: Snapshot, claim: NodeClaim): PricePerHour {
  const pool = poolOf(claim)
  const catalogue = catalogues.find(({ nodePools }) => nodePools.includes(pool))
  return priceOfLabels(catalogue?.instanceTypes ?? [], claim.metadata.labels ?? {})
}

const poolOf = ({ metadata }: NodeClaim): string => ownValue(metadata.labels, labels.nodePool) ?? ''
const isPool = (object: KubeObject): object is NodePool => object.kind === 'NodePool'
const isPod = (object: KubeObject): object is Pod => object.kind === 'Pod'
const isClaim = (object: KubeObject): object is NodeClaim => object.kind === 'NodeClaim'
const claimsIn = ({ objects }: Snapshot): readonly NodeClaim[] => objects.filter(isClaim)
const nameOf = ({ metadata }: KubeObject): string => `${metadata.namespace ?? ''}/${metadata.name}`
const podsIn = ({ objects }: Snapshot): readonly string[] => objects.filter(isPod).map(nameOf)
