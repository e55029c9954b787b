/** What NodePools may buy, and when their nodes may be disrupted. */
import { type DisruptionReason, labels } from '@tenon/api'
import type { NodePoolExplanation, Snapshot, Study } from '@tenon/ask'
import { explainNodePool } from '@tenon/ask/explain'
import { studied } from './explain.ts'

/** How many nodes a budget allows to be disrupted at once, from a time on. */
export interface BudgetStep {
  readonly fromMs: number
  readonly untilMs?: number
  readonly allowed: number
}

export interface OfferingAnswer {
  readonly instanceType: string
  readonly zone: string
  readonly capacityType: string
  /** Absent if unknown. */
  readonly pricePerHour?: number
  readonly available: boolean
  readonly because?: string
  readonly untilMs?: number
}

export interface PoolAnswer {
  readonly explanation: NodePoolExplanation
  readonly budgets: readonly { readonly reason: DisruptionReason; readonly steps: readonly BudgetStep[] }[]
  readonly offerings: readonly OfferingAnswer[]
}

export interface PoolsAnswer {
  readonly atMs: number
  readonly currency?: string
  readonly pools: readonly PoolAnswer[]
}

const timelineMs = 48 * 3_600_000
/** A cron expression may open a window every minute. */
const mostSteps = 500

export async function poolsAnswer(snapshot: Snapshot, signal: AbortSignal): Promise<PoolsAnswer> {
  return await studied(snapshot, async (study) => {
    const { operator } = study
    const decision = await study.decide()
    const catalogue = await operator.questions().catalogue(signal)
    const pools: PoolAnswer[] = []
    const names = operator.caches.nodePools.list().map(({ metadata }) => metadata.name)
    for (const name of names.toSorted()) {
      const explanation = await explainNodePool(study, name, signal, decision)
      if (explanation === undefined) continue
      const types = catalogue.find(({ nodePool }) => nodePool.metadata.name === name)?.instanceTypes ?? []
      pools.push({
        explanation,
        budgets: explanation.budgets.map(({ reason }) => ({ reason, steps: stepsOf(study, name, reason) })),
        offerings: types.flatMap((type) => offeringsOf(type)),
      })
    }
    const { priceUnit } = snapshot.cloud
    return { atMs: snapshot.takenAtMs, ...(priceUnit !== undefined && { currency: priceUnit }), pools }
  })
}

function stepsOf({ operator, snapshot }: Study, name: string, reason: DisruptionReason): BudgetStep[] {
  const pool = operator.caches.nodePools.get({ name })
  if (pool === undefined) return []
  const steps: BudgetStep[] = []
  for (const { fromMs, untilMs, allowed } of operator.questions().pools.budget(pool, reason).windows) {
    if (fromMs > snapshot.takenAtMs + timelineMs || steps.length === mostSteps) break
    steps.push({ fromMs, allowed, ...(untilMs !== undefined && { untilMs }) })
  }
  return steps
}

type InstanceType = NonNullable<Snapshot['catalogues'][number]['instanceTypes']>[number]

function offeringsOf({ name, offerings }: InstanceType): readonly OfferingAnswer[] {
  return offerings.map(({ requirements, pricePerHour, available, unavailability }) => {
    const valueOf = (key: string) => requirements.find((each) => each.key === key)?.values?.[0] ?? ''
    return {
      instanceType: name,
      zone: valueOf(labels.zone),
      capacityType: valueOf(labels.capacityType),
      ...(pricePerHour !== undefined && { pricePerHour }),
      available,
      ...(unavailability?.because !== undefined && { because: unavailability.because }),
      ...(unavailability?.untilMs !== undefined && { untilMs: unavailability.untilMs }),
    }
  })
}
