/** The report as an object: what `-o json` prints, and what text and page are made of (adoption.md 1). */
import type { KubeObject } from '@tenon/api'
import type { CostReport } from '@tenon/ask'
import { hoursPerMonth, roundedParts } from '@tenon/ask/cost'
import type { ClusterReport, Obstacle, Plan, ReportedDimension, RequestedPart, Risk } from '@tenon/ask/report'
import { rfc3339 } from '@tenon/runtime'
import { originText } from '../../source/snapshot.ts'
import type { FoundAutoscaler, GatheredFacts } from './gather.ts'
import { nextSteps, type NextStep } from './next-steps.ts'

/** Amounts of known prices alone. */
export interface PrintedMoney {
  readonly perHour: number
  readonly perMonth: number
}

export interface PrintedGroup {
  /** Absent for nodes without one. */
  readonly name?: string
  readonly instances?: number
  readonly pods: number
  /** Nodes, by namespace and workload pods, of unknown price. */
  readonly unpriced: number
  /** Absent if no price of the group is known. */
  readonly perMonth?: number
  /** Of it what nobody requests; not by namespace and workload. */
  readonly idlePerMonth?: number
}

export interface PrintedCostTable {
  readonly groups: readonly PrintedGroup[]
  /** What nobody requests, and no group has. */
  readonly idlePerMonth: number
}

export interface PrintedPlan {
  readonly nodes: number
  readonly removed: number
  /** The fewest pods that have to move. */
  readonly evictions: number
  readonly price: PrintedMoney
  readonly savedPerMonth: number
  readonly added: readonly {
    readonly nodePool: string
    readonly instanceType: string
    readonly count: number
    readonly pricePerHour?: number
  }[]
}

export interface PrintedObstacle extends Omit<Obstacle, 'pricePerHour'> {
  /** Absent if it is unknown. */
  readonly perMonth?: number
}

export interface PrintedReport {
  readonly takenAt: string
  /** Where the facts are from, as a sentence. */
  readonly source: string
  readonly currency?: string
  readonly autoscalers: readonly FoundAutoscaler[]
  /** Kinds that may not be read: what they would say is unknown. */
  readonly notRead: readonly string[]
  /** Objects that are in no figure, and why. */
  readonly unreadable: readonly string[]
  readonly now: {
    readonly nodes: number
    readonly pods: number
    /** Absent if no price is known. */
    readonly price?: PrintedMoney
    readonly idle?: PrintedMoney
    readonly cpu: RequestedPart
    readonly memory: RequestedPart
  }
  /** Nodes of unknown price: in no sum, and kept by each plan. */
  readonly unpriced: readonly { readonly name: string; readonly type?: string }[]
  readonly cost: Readonly<Record<ReportedDimension, PrintedCostTable>>
  /** Absent if no price is known. */
  readonly plans?: { readonly byMoves: PrintedPlan; readonly fromNothing: PrintedPlan }
  readonly obstacles: readonly PrintedObstacle[]
  /** Whether usage was measured: without, no obstacle is about unused requests. */
  readonly isUsageKnown: boolean
  readonly risks: readonly Risk[]
  readonly next: readonly NextStep[]
}

const centDigits = 2
const perHourDigits = 4

/** @param facts of the snapshot that the report is about. */
export function printedReport(report: ClusterReport, facts: GatheredFacts): KubeObject & PrintedReport {
  const { cost, currency, now, plans, takenAtMs } = report
  const isPriced = plans !== undefined
  const { unpriced } = cost.nodepool
  const byNamespace = costTable(cost.namespace)
  const idle = { ...moneyOf(cost.namespace.idlePerHour), perMonth: byNamespace.idlePerMonth }
  return {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'ClusterReport',
    metadata: { name: 'report' },
    takenAt: rfc3339(takenAtMs),
    source: originText(facts.snapshot),
    ...(currency !== undefined && { currency }),
    autoscalers: facts.autoscalers,
    notRead: facts.notRead,
    unreadable: report.unreadable,
    now: {
      nodes: now.nodes,
      pods: report.pods,
      ...(isPriced && { price: moneyOf(now.price.pricePerHour), idle }),
      cpu: report.cpu,
      memory: report.memory,
    },
    unpriced,
    cost: {
      nodepool: costTable(cost.nodepool),
      type: costTable(cost.type),
      namespace: byNamespace,
      owner: costTable(cost.owner),
    },
    ...(plans && {
      plans: { byMoves: planOf(plans.byMoves, now), fromNothing: planOf(plans.fromNothing, now) },
    }),
    obstacles: report.obstacles.map(({ pricePerHour, ...each }) => ({
      ...each,
      ...(pricePerHour !== undefined && { perMonth: perMonth(pricePerHour) }),
    })),
    isUsageKnown: report.isUsageKnown,
    risks: report.risks,
    next: nextSteps(facts, typesWithoutPrice(unpriced)),
  }
}

function typesWithoutPrice(unpriced: PrintedReport['unpriced']): readonly string[] {
  return [...new Set(unpriced.flatMap(({ type }) => type ?? []))].toSorted()
}

function perMonth(pricePerHour: number): number {
  return roundedParts([], pricePerHour * hoursPerMonth, centDigits).total
}

function moneyOf(pricePerHour: number): PrintedMoney {
  return { perHour: roundedParts([], pricePerHour, perHourDigits).total, perMonth: perMonth(pricePerHour) }
}

function planOf(plan: Plan, now: Plan): PrintedPlan {
  const { added, evictions, nodes, price, removed } = plan
  return {
    nodes,
    removed,
    evictions,
    price: moneyOf(price.pricePerHour),
    // The difference of what is printed, so that readers can check it.
    savedPerMonth: centsOf(perMonth(now.price.pricePerHour) - perMonth(price.pricePerHour)),
    added: added.map(({ nodePool, instanceType, count, pricePerHour }) => ({
      nodePool,
      instanceType,
      count,
      ...(pricePerHour !== undefined && { pricePerHour }),
    })),
  }
}

function centsOf(amount: number): number {
  return Math.round(amount * 100) / 100
}

/** Rounded so that the parts add up to the total. */
function costTable(report: CostReport): PrintedCostTable {
  const { by, groups, idlePerHour, totalPerHour } = report
  const byPods = by === 'namespace' || by === 'owner'
  const amounts = [
    ...groups.map((group) => group.requestedPerHour),
    ...groups.map((group) => group.idlePerHour),
    idlePerHour,
  ].map((amount) => amount * hoursPerMonth)
  const { parts } = roundedParts(amounts, totalPerHour * hoursPerMonth, centDigits)
  return {
    groups: groups.map(({ name, instances, pods, unpriced }, at): PrintedGroup => {
      const idle = parts[groups.length + at] ?? 0
      const isUnknown = unpriced > 0 && unpriced === (byPods ? pods : instances)
      return {
        ...(name !== undefined && { name }),
        ...(!byPods && { instances }),
        pods,
        unpriced,
        ...(!isUnknown && {
          perMonth: centsOf((parts[at] ?? 0) + idle),
          ...(!byPods && { idlePerMonth: idle }),
        }),
      }
    }),
    idlePerMonth: parts.at(-1) ?? 0,
  }
}
