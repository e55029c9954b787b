/** A cluster in figures: what it costs, what it could cost, what stands in the way, and what may go wrong (adoption.md 1). */
import { ownValue } from '@tenon/api'
import { type CostDimension, costReport, type CostReport } from '../cost/cost.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { reportedCluster } from './cluster.ts'
import { asItIs, type Plan } from './plan.ts'
import { type MeasuredUsage, type Obstacle, reachOf } from './obstacles.ts'
import { type Risk, risksOf } from './risks.ts'

/** What a report knows besides the snapshot. */
export interface ReportFacts {
  /** Undefined if metrics are not served. */
  readonly usage: MeasuredUsage
  /** Undefined if unknown. */
  readonly serverVersion: string | undefined
}

/** How much of a resource pods request, of what nodes offer them; in canonical units. */
export interface RequestedPart {
  readonly requested: number
  readonly allocatable: number
}

export interface ClusterReport {
  readonly takenAtMs: number
  /** Undefined if unknown. */
  readonly currency: string | undefined
  readonly pods: number
  readonly cpu: RequestedPart
  readonly memory: RequestedPart
  /** By `nodepool`, which has node groups as well, `type`, `namespace` and `owner`. */
  readonly cost: Readonly<Record<ReportedDimension, CostReport>>
  readonly now: Plan
  /**
   * Undefined if no price is known. Nodes of unknown price stay in both plans, so that their prices compare with the
   * present one.
   */
  readonly plans: { readonly byMoves: Plan; readonly fromNothing: Plan } | undefined
  /** The most expensive first; those whose cost is unknown last. */
  readonly obstacles: readonly Obstacle[]
  /** Whether usage was measured: without, no obstacle is about unused requests. */
  readonly isUsageKnown: boolean
  readonly risks: readonly Risk[]
  /** Objects that are in no figure, and why. */
  readonly unreadable: readonly string[]
}

export const reportedDimensions = [
  'nodepool',
  'type',
  'namespace',
  'owner',
] as const satisfies CostDimension[]
export type ReportedDimension = (typeof reportedDimensions)[number]

export async function clusterReport(snapshot: Snapshot, facts: ReportFacts): Promise<ClusterReport> {
  const cluster = reportedCluster(snapshot)
  const { instances } = cluster
  const reach = await reachOf(cluster, facts.usage)
  const now = asItIs(cluster)
  const isPriced = now.price.unpriced < instances.length
  const partOf = (resource: 'cpu' | 'memory'): RequestedPart => ({
    requested: sumOf(instances, ({ pods }) =>
      sumOf(pods, ({ requests }) => ownValue(requests, resource) ?? 0),
    ),
    allocatable: sumOf(instances, ({ allocatable }) => ownValue(allocatable, resource) ?? 0),
  })
  return {
    unreadable: cluster.unreadable,
    takenAtMs: snapshot.takenAtMs,
    currency: snapshot.cloud.priceUnit,
    pods: sumOf(instances, ({ pods }) => pods.length),
    cpu: partOf('cpu'),
    memory: partOf('memory'),
    cost: {
      nodepool: costReport(instances, 'nodepool'),
      type: costReport(instances, 'type'),
      namespace: costReport(instances, 'namespace'),
      owner: costReport(instances, 'owner'),
    },
    now,
    plans: isPriced ? { byMoves: reach.plan, fromNothing: reach.least } : undefined,
    obstacles: isPriced
      ? reach.obstacles
      : reach.obstacles.map((each) => ({ ...each, pricePerHour: undefined })),
    isUsageKnown: facts.usage !== undefined,
    risks: await risksOf(cluster, {
      unplaceable: reach.least.unplaceable,
      serverVersion: facts.serverVersion,
    }),
  }
}

function sumOf<T>(items: readonly T[], amountOf: (item: T) => number): number {
  return items.reduce((sum, item) => sum + amountOf(item), 0)
}
