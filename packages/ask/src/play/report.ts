/** The results of a play. */
import type { Bill, BilledHour } from './bill.ts'
import type { Durations, Tally } from './tally.ts'

/** Figures from the start of a play until now. */
export interface PlayReport {
  readonly elapsedMs: number
  /** In the currency of the catalogue, without instances of unknown price. */
  readonly cost: number
  readonly hours: readonly BilledHour[]
  readonly pricePerHour: number
  readonly peakPricePerHour: number
  readonly instanceHours: number
  readonly instances: number
  readonly peakInstances: number
  /** Instances of unknown price. */
  readonly unpricedInstances: number
  readonly launches: number
  /** Voluntary disruption commands, by reason and by whether they launched replacements. */
  readonly moves: ReadonlyMap<string, number>
  readonly movesTotal: number
  readonly evictions: number
  readonly evictionsPer1000PodDays: number
  readonly evictionsPerPod: number
  /** Bound pods that their kubelet rejected. */
  readonly rejections: number
  /** From the creation of a pod until it is Ready, including recreated pods. */
  readonly pending: Durations
  readonly pods: number
  readonly peakPods: number
  readonly podDays: number
}

interface Metric {
  readonly name: string
  readonly values: readonly {
    readonly labels: Readonly<Partial<Record<string, string | number>>>
    readonly value: number
  }[]
}

/** Metric families of the operator. */
interface Families {
  getSingleMetric(name: string): { get(): Promise<Metric> } | undefined
}

export async function reportOf(parts: {
  readonly bill: Bill
  readonly tally: Tally
  readonly launches: number
  readonly registry: Families
}): Promise<PlayReport> {
  const { bill, tally, launches } = parts
  const moves = await movesOf(parts.registry)
  const { podDays, podsSeen, evictions } = tally
  return {
    elapsedMs: tally.elapsedMs,
    cost: bill.cost,
    hours: bill.hours,
    pricePerHour: bill.pricePerHour,
    peakPricePerHour: bill.peakPricePerHour,
    instanceHours: bill.instanceHours,
    instances: bill.instances,
    peakInstances: bill.peakInstances,
    unpricedInstances: bill.unpriced,
    launches,
    moves,
    movesTotal: [...moves.values()].reduce((sum, count) => sum + count, 0),
    evictions,
    evictionsPer1000PodDays: podDays === 0 ? 0 : (1000 * evictions) / podDays,
    evictionsPerPod: podsSeen === 0 ? 0 : evictions / podsSeen,
    rejections: tally.rejections,
    pending: tally.pending(),
    pods: podsSeen,
    peakPods: tally.mostPods,
    podDays,
  }
}

async function movesOf(registry: Families): Promise<ReadonlyMap<string, number>> {
  const family = await registry.getSingleMetric('karpenter_voluntary_disruption_decisions_total')?.get()
  const moves = new Map<string, number>()
  for (const { labels, value } of family?.values ?? []) {
    if (value === 0) continue
    const name = `${labels['reason'] ?? ''} ${labels['decision'] ?? ''}`
    moves.set(name, (moves.get(name) ?? 0) + value)
  }
  return moves
}
