/** What a NodePool can launch now, or what it waits for (ask.md 2). */
import {
  conditionOf,
  type DisruptionReason,
  formatResource,
  isConditionTrue,
  labels,
  type NodeClaim,
  type NodePool,
  ownValue,
  parseResources,
  sumOfPrices,
} from '@tenon/api'
import {
  budgetWindows,
  compatible,
  overlaps,
  parseRequirements,
  type PoolInput,
  type Requirements,
  renderTemplateReason,
  unreadableBudget,
} from '@tenon/engine'
import type { PendingDecision } from '@tenon/operator'
import { balanceCost, poolAnnotationProblems, type PoolProblem } from '@tenon/operator/objects'
import { rfc3339 } from '@tenon/runtime'
import type { Study } from '../study/study.ts'
import { type AsOf, asOf } from './as-of.ts'
import { driftedFields } from './drifted-fields.ts'

/** An offering that the NodePool allows but that is unavailable now. */
interface ShortOffering {
  readonly instanceType: string
  readonly zone: string
  readonly capacityType: string
  readonly because: string
  /** Of the next attempt, RFC 3339. */
  readonly until?: string
}

interface PoolLimit {
  readonly resource: string
  readonly limit: string
  readonly used: string
  /** For NodeClaims in progress. */
  readonly reserved: string
}

export interface PoolBudget {
  readonly reason: DisruptionReason
  /** Nodes that may be disrupted at once now. */
  readonly allowed: number
  readonly disrupting: number
  readonly total: number
  /** Of the schedules; absent: UTC. */
  readonly timeZone?: string
  /** The next three changes. */
  readonly next: readonly { readonly from: string; readonly until?: string; readonly allowed: number }[]
}

/** A budget with a schedule. */
export interface PoolSchedule {
  readonly schedule: string
  readonly duration: string
  /** Number or percentage of nodes, as in the budget. */
  readonly nodes: string
  /** Absent: all. */
  readonly reasons?: readonly DisruptionReason[]
  /** Absent: UTC. */
  readonly timeZone?: string
  /** Whether the budget holds now. */
  readonly isActive: boolean
  /** The next three changes. */
  readonly next: readonly { readonly at: string; readonly isActive: boolean }[]
}

/** Pods that the NodePool cannot serve, for one reason. */
interface PoolRefusal {
  readonly code: string
  readonly pods: number
  /** The message for the first pod. */
  readonly message: string
}

export interface NodePoolExplanation {
  readonly name: string
  readonly asOf: AsOf
  readonly summary: string
  readonly isReady: boolean
  /** Absent if it can launch nodes. */
  readonly waitsFor?: { readonly code: string; readonly message: string }
  readonly nodes: number
  readonly types: { readonly offered: number; readonly left: number; readonly problem?: string }
  readonly offerings: {
    readonly left: number
    readonly available: number
    readonly short: readonly ShortOffering[]
  }
  readonly limits: readonly PoolLimit[]
  readonly budgets: readonly PoolBudget[]
  readonly schedules: readonly PoolSchedule[]
  readonly drift: { readonly updated: number; readonly total: number; readonly fields: readonly string[] }
  /** Nodes outside the cheapest zone for the sake of balance, and what that costs. Absent without such nodes. */
  readonly zoneBalance?: { readonly nodes: number; readonly pricePerHour: number }
  /** Annotations that cannot be read, and so count as absent. Absent = none. */
  readonly ignored?: readonly PoolProblem[]
  readonly refused: readonly PoolRefusal[]
}

const reasons: readonly DisruptionReason[] = ['Empty', 'Drifted', 'Underutilized']

/** @returns undefined if there is no NodePool with this name. */
export async function explainNodePool(
  study: Study,
  name: string,
  signal: AbortSignal,
  decision?: PendingDecision,
): Promise<NodePoolExplanation | undefined> {
  const { operator, snapshot } = study
  const pool = operator.caches.nodePools.get({ name })
  if (pool === undefined) return undefined
  const questions = operator.questions()
  const read = await questions.readPool(pool, signal)
  const { instanceTypes: offered, problem } =
    (await questions.catalogue(signal)).find((each) => each.nodePool.metadata.name === name) ?? {}
  const left = whatIsLeft(pool, offered ?? [])
  const drift = driftOf(study, name, pool)
  const waitsFor = obstacleOf(study, pool)
  const zoneBalance = zoneBalanceOf(study, name, pool)
  const ignored = poolAnnotationProblems(pool)
  return {
    name,
    asOf: asOf(snapshot),
    summary: waitsFor === undefined ? 'It launches nodes' : `It launches no nodes: ${waitsFor.message}`,
    isReady: isConditionTrue(pool, 'Ready'),
    ...(waitsFor && { waitsFor }),
    nodes: read?.usage['nodes'] ?? pool.status?.nodes ?? 0,
    types: {
      offered: offered?.length ?? 0,
      left: left.types,
      ...(problem !== undefined && { problem }),
    },
    offerings: left.offerings,
    limits: limitsOf(pool, read),
    budgets: waitsFor?.code === 'foreign' ? [] : reasons.map((reason) => budgetOf(study, pool, reason)),
    schedules: schedulesOf(study, pool),
    drift,
    ...(zoneBalance && { zoneBalance }),
    ...(ignored.length > 0 && { ignored }),
    refused: decision === undefined ? [] : refusalsOf(name, decision),
  }
}

function obstacleOf({ operator }: Study, pool: NodePool): NodePoolExplanation['waitsFor'] {
  const foreign = operator.state.notServedText(pool)
  if (foreign !== undefined) return { code: 'foreign', message: foreign }
  const found = operator
    .questions()
    .unreadyPools()
    .find((each) => each.nodePool === pool.metadata.name)
  return found && { code: found.code, message: found.because }
}

function whatIsLeft(pool: NodePool, types: Parameters<typeof suiting>[0]) {
  const wanted = wantedBy(pool)
  const suitable = suiting(types, wanted)
  const offerings = suitable.flatMap(({ name, offerings: all }) =>
    all
      .map((offering) => ({ name, offering, has: parseRequirements(offering.requirements) }))
      .filter(({ has }) => overlaps(has, wanted)),
  )
  const short = offerings
    .filter(({ offering }) => !offering.available)
    .map(({ name, offering, has }): ShortOffering => {
      const { because = 'the provider does not sell it now', untilMs } = offering.unavailability ?? {}
      const valueOf = (key: string) => [...(has.get(key)?.values ?? [])][0] ?? ''
      return {
        instanceType: name,
        zone: valueOf(labels.zone),
        capacityType: valueOf(labels.capacityType),
        because,
        ...(untilMs !== undefined && { until: rfc3339(untilMs) }),
      }
    })
  return {
    types: suitable.length,
    offerings: { left: offerings.length, available: offerings.length - short.length, short },
  }
}

function wantedBy({ spec: { template } }: NodePool): Requirements {
  return parseRequirements(template.spec.requirements)
}

function suiting(types: PoolInput['instanceTypes'], wanted: Requirements): PoolInput['instanceTypes'] {
  // Labels that the NodePool sets on its nodes need not be known of an instance type.
  const own = new Set(wanted.keys())
  return types.filter(
    ({ requirements, offerings }) =>
      compatible(parseRequirements(requirements), wanted, own) &&
      offerings.some((offering) => overlaps(parseRequirements(offering.requirements), wanted)),
  )
}

function limitsOf({ spec }: NodePool, read: PoolInput | undefined): readonly PoolLimit[] {
  const limits = parseResources(spec.limits)
  return Object.entries(limits).map(([resource, limit]) => ({
    resource,
    limit: formatResource(resource, limit),
    used: formatResource(resource, ownValue(read?.usage, resource) ?? 0),
    reserved: formatResource(resource, ownValue(read?.reserved, resource) ?? 0),
  }))
}

/** How many nodes the budgets of a NodePool allow for a reason now, and when that changes. */
export function budgetOf({ operator }: Study, pool: NodePool, reason: DisruptionReason): PoolBudget {
  const { allowed, disrupting, total, windows } = operator.questions().pools.budget(pool, reason)
  const next = Iterator.from(windows)
    .drop(1)
    .take(3)
    .map(({ fromMs, untilMs, allowed: then }) => ({
      from: rfc3339(fromMs),
      ...(untilMs !== undefined && { until: rfc3339(untilMs) }),
      allowed: then,
    }))
  const { timeZone } = operator.state.poolWishes(pool)
  return { reason, allowed, disrupting, total, ...(timeZone !== undefined && { timeZone }), next: [...next] }
}

/** Those that can be read. */
function schedulesOf({ operator, snapshot }: Study, pool: NodePool): readonly PoolSchedule[] {
  const { timeZone } = operator.state.poolWishes(pool)
  return (pool.spec.disruption?.budgets ?? []).flatMap((budget): readonly PoolSchedule[] => {
    const { duration, nodes, schedule } = budget
    if (schedule === undefined || duration === undefined || unreadableBudget([budget], 0)) return []
    // Alone, and of no node, a budget allows nothing while it holds.
    const alone = [{ nodes: '0', schedule, duration }]
    const [now, ...next] = budgetWindows(alone, 'Empty', 1, snapshot.takenAtMs, timeZone).take(4)
    return [
      {
        schedule,
        duration,
        nodes,
        ...(budget.reasons && { reasons: budget.reasons }),
        ...(timeZone !== undefined && { timeZone }),
        isActive: now?.allowed === 0,
        next: next.map(({ allowed, fromMs }) => ({ at: rfc3339(fromMs), isActive: allowed === 0 })),
      },
    ]
  })
}

function claimsOf({ nodeClaims }: Study['operator']['caches'], pool: string): readonly NodeClaim[] {
  return nodeClaims
    .list()
    .filter(
      ({ metadata }) =>
        metadata.labels?.[labels.nodePool] === pool && metadata.deletionTimestamp === undefined,
    )
}

function driftOf({ operator }: Study, name: string, pool: NodePool): NodePoolExplanation['drift'] {
  const claims = claimsOf(operator.caches, name)
  const drifted = claims.filter((claim) => isConditionTrue(claim, 'Drifted'))
  const fields = drifted.flatMap((claim) => {
    const found = driftedFields(claim, pool)
    return found.length > 0 ? found : [conditionOf(claim, 'Drifted')?.reason ?? '']
  })
  return {
    updated: claims.length - drifted.length,
    total: claims.length,
    fields: [...new Set(fields)].toSorted(),
  }
}

function zoneBalanceOf(
  { operator: { caches, state } }: Study,
  name: string,
  pool: NodePool,
): NodePoolExplanation['zoneBalance'] {
  const costs = claimsOf(caches, name)
    .map((claim) => balanceCost(claim, state.poolWishes(pool)))
    .filter((cost) => cost > 0)
  if (costs.length === 0) return undefined
  return { nodes: costs.length, pricePerHour: Number(sumOfPrices(costs).pricePerHour.toFixed(6)) }
}

function refusalsOf(name: string, { result }: PendingDecision): readonly PoolRefusal[] {
  const refusals = new Map<string, { pods: number; readonly message: string }>()
  for (const { reason } of result.failures) {
    if (reason.kind !== 'noTemplate') continue
    const own = reason.templates.find((each) => each.nodePool === name)
    if (own === undefined) continue
    const known = refusals.get(own.reason.kind)
    if (known === undefined)
      refusals.set(own.reason.kind, { pods: 1, message: renderTemplateReason(own.reason, name) })
    else known.pods++
  }
  return [...refusals]
    .map(([code, { pods, message }]) => ({ code, pods, message }))
    .toSorted((a, b) => b.pods - a.pods)
}
