/** NodePools in whose nodes voluntary disruption works in one zone at a time (annotation `tenon.sh/disrupt-zones`). */
import { isConditionTrue, labels, type NodeClaim } from '@tenon/api'
import { perObject } from '@tenon/runtime'
import { poolOf } from '../state/nodepools/managed-pool.ts'
import type { StateNode } from '../state/nodes/state-node.ts'
import { predecessorsOf } from './predecessors.ts'

interface ZonesOfPool {
  /** Zones in which a node is being replaced or removed, or its replacement is not initialized yet. */
  readonly busy: ReadonlySet<string>
  /** Zones in the order of their names; only those with drifted nodes, if there are any. */
  readonly waiting: readonly string[]
  /** Zone of the latest replacement, and when it was created, Unix milliseconds. */
  readonly last: { readonly zone: string; readonly atMs: number } | undefined
}

/** A zone is not left for another one within this time, as long as it has drifted nodes. */
const stayMs = 30 * 60_000
/** Zones take turns of this length, so that one whose nodes cannot go does not hold up the others. */
const turnMs = 10 * 60_000

/**
 * Where nodes of the NodePool may be disrupted now. Computed from the objects, so that it is the same after a restart.
 * @returns undefined if no zone is, as work has begun in several.
 */
export function openZone(stateNodes: readonly StateNode[], pool: string, nowMs: number): string | undefined {
  const zones = zonesOf(stateNodes).get(pool)
  if (zones === undefined) return undefined
  const { busy, last, waiting } = zones
  if (busy.size > 0) return busy.size === 1 ? [...busy][0] : undefined
  if (last !== undefined && nowMs - last.atMs < stayMs && waiting.includes(last.zone)) return last.zone
  return waiting[Math.floor(nowMs / turnMs) % waiting.length]
}

const zonesOf = perObject((stateNodes: readonly StateNode[]): ReadonlyMap<string, ZonesOfPool> => {
  const views = stateNodes.filter((view): view is ClaimView => view.claim !== undefined)
  const byName = new Map(views.map(({ claim }) => [claim.metadata.name, claim]))
  return new Map(
    Array.from(
      Map.groupBy(views, ({ claim }) => poolOf(claim)),
      ([pool, own]) => [pool, zonesOfPool(own, byName)] as const,
    ),
  )
})

type ClaimView = StateNode & { readonly claim: NodeClaim }

function zonesOfPool(views: readonly ClaimView[], byName: ReadonlyMap<string, NodeClaim>): ZonesOfPool {
  const busy = new Set<string>()
  const claims = views.map(({ claim }) => claim)
  let last: ZonesOfPool['last']
  for (const { claim, isMarkedForDeletion } of views) {
    const replaced = predecessorsOf(claim).flatMap((name) => byName.get(name) ?? [])
    // A command marks its nodes before their conditions say so. Nodes that others delete are not its work.
    const isChosen = isMarkedForDeletion && claim.metadata.deletionTimestamp === undefined
    if (isChosen || isConditionTrue(claim, 'DisruptionReason')) busy.add(zoneOf(claim))
    if (!isConditionTrue(claim, 'Initialized')) for (const each of replaced) busy.add(zoneOf(each))
    const atMs = Date.parse(claim.metadata.creationTimestamp ?? '')
    if (predecessorsOf(claim).length > 0 && atMs > (last?.atMs ?? 0)) last = { zone: zoneOf(claim), atMs }
  }
  const drifted = claims.filter((claim) => isConditionTrue(claim, 'Drifted'))
  const waiting = new Set((drifted.length > 0 ? drifted : claims).map(zoneOf))
  return { busy, last, waiting: [...waiting].toSorted() }
}

const zoneOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.zone] ?? ''
