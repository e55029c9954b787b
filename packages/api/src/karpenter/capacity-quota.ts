/** What a CapacityQuota says, and whether it is enforced (quotas.md 1). */
import { conditionOf, type NewCondition, withCondition } from '../conditions.ts'
import { isRecord } from '../is-record.ts'
import { isLabelValue, qualifiedNameProblem } from '../label-syntax.ts'
import type { Condition, LabelSelector, ResourceList } from '../objects.ts'
import { formatResources, isQuantity, parseResource, quantityNanos } from '../quantity.ts'
import { setOwn } from '../own.ts'
import type { Resources } from '../instance-types.ts'
import type { CapacityQuota } from './types.ts'

/** A quota as decisions use it, or its first field that cannot be read. */
export type QuotaReading =
  | { readonly kind: 'read'; readonly selector: LabelSelector; readonly limits: Resources }
  | UnreadableQuota

interface UnreadableQuota {
  readonly kind: 'unreadable'
  /** Path in the object. */
  readonly field: string
  readonly problem: string
  /** What to write instead. */
  readonly fix: string
}

/** Cluster Autoscaler enforces a quota only while this condition is True. */
export const quotaValidType = 'cluster-autoscaler.kubernetes.io/valid'

/** Reason of that condition where Tenon cannot read the quota. */
const unreadableReason = 'Unreadable'

const mostResources = 20
const longestName = 63
const nanosPerUnit = 1_000_000_000n

/** Whether decisions keep to the quota: it can be read, and nobody has called this generation of it invalid. */
export function isQuotaEnforced(quota: CapacityQuota): boolean {
  const condition = conditionOf(quota, quotaValidType)
  const isRefused =
    condition?.status === 'False' &&
    condition.observedGeneration === quota.metadata.generation &&
    // An earlier version of Tenon may have known less.
    condition.reason !== unreadableReason
  return !isRefused && readQuota(quota).kind === 'read'
}

/** The quota without the parts of its status that no API server that knows the kind would have accepted. */
export function withReadableStatus(quota: CapacityQuota): CapacityQuota {
  const { status, ...rest } = quota
  const given: unknown = status
  if (!isRecord(given)) return rest
  const { conditions, observedGeneration, used } = given
  const resources = isRecord(used) && isRecord(used['resources']) ? used['resources'] : undefined
  return {
    ...rest,
    status: {
      ...(typeof observedGeneration === 'number' && { observedGeneration }),
      ...(resources && { used: { resources: resources as ResourceList } }),
      ...(Array.isArray(conditions) && { conditions: conditions.filter(isCondition) }),
    },
  }
}

function isCondition(condition: unknown): condition is Condition {
  if (!isRecord(condition)) return false
  const { lastTransitionTime, message, reason, status, type } = condition
  return [type, status, reason, message, lastTransitionTime].every((each) => typeof each === 'string')
}

/** What cannot be read, and what to write instead; undefined if everything can. */
export function quotaProblem(reading: QuotaReading): string | undefined {
  return reading.kind === 'read' ? undefined : `${reading.field} ${reading.problem}; ${reading.fix}`
}

/** Reason of condition Reconciled, and of events, where a quota cannot be read. */
export const quotaFailedReason = 'ReconciliationFailed'

/**
 * The status of a quota as of now.
 * @param used by existing nodes, for the keys of the limits; undefined if the quota cannot be read.
 */
export function quotaStatus(
  quota: CapacityQuota,
  used: Resources | undefined,
  nowMs: number,
): NonNullable<CapacityQuota['status']> {
  const { generation = 0 } = quota.metadata
  return {
    ...(used && { used: { resources: formatResources(used) } }),
    observedGeneration: generation,
    conditions: conditionsOf(quota).reduce<readonly Condition[]>(
      (conditions, condition) => withCondition({ ...quota, status: { conditions } }, condition, nowMs),
      quota.status?.conditions ?? [],
    ),
  }
}

function conditionsOf(quota: CapacityQuota): readonly NewCondition[] {
  const message = quotaProblem(readQuota(quota))
  if (message !== undefined)
    return [
      { type: 'Reconciled', status: 'False', reason: quotaFailedReason, message },
      { type: quotaValidType, status: 'False', reason: unreadableReason, message },
    ]
  return [
    { type: 'Reconciled', status: 'True', reason: 'ReconciliationSucceeded' },
    // A verdict of somebody else about this generation is left as it is.
    ...(isQuotaEnforced(quota) ? [{ type: quotaValidType, status: 'True' as const, reason: 'Valid' }] : []),
  ]
}

/** Never throws, whatever the object contains. */
export function readQuota({ spec }: CapacityQuota): QuotaReading {
  const given: unknown = spec
  const { selector = {}, limits } = isRecord(given) ? given : {}
  const unread = selectorProblem(selector)
  if (unread !== undefined) return unread
  const resources = isRecord(limits) ? limits['resources'] : undefined
  const field = 'spec.limits.resources'
  if (!isRecord(resources)) return unreadable(field, 'is missing', 'name at least one resource')
  const entries = Object.entries(resources)
  if (entries.length > mostResources)
    return unreadable(field, `has ${entries.length} entries`, `name at most ${mostResources}`)
  const amounts: Record<string, number> = {}
  for (const [name, quantity] of entries) {
    const path = `${field}[${name.slice(0, longestName + 1)}]`
    if (name.length > longestName)
      return unreadable(path, 'is too long', `use a name of at most ${longestName} characters`)
    if (!isWhole(quantity))
      return unreadable(
        path,
        `is ${shown(quantity)}`,
        'All resource quantities must be non-negative integers.',
      )
    setOwn(amounts, name, parseResource(name, quantity))
  }
  return { kind: 'read', selector: selector as LabelSelector, limits: amounts }
}

function isWhole(quantity: unknown): quantity is string | number {
  if (typeof quantity !== 'string' && typeof quantity !== 'number') return false
  const text = String(quantity)
  if (!isQuantity(text) || text.endsWith('m')) return false
  const nanos = quantityNanos(text) ?? -1n
  return nanos >= 0n && nanos % nanosPerUnit === 0n
}

function selectorProblem(selector: unknown): UnreadableQuota | undefined {
  const field = 'spec.selector'
  if (!isRecord(selector))
    return unreadable(field, 'is no label selector', 'write matchLabels or matchExpressions')
  const { matchLabels = {}, matchExpressions = [] } = selector
  if (!isRecord(matchLabels))
    return unreadable(`${field}.matchLabels`, 'is no map', 'write labels with their values')
  for (const [key, value] of Object.entries(matchLabels)) {
    const wrong = qualifiedNameProblem(key)
    if (wrong !== undefined)
      return unreadable(`${field}.matchLabels[${key}]`, wrong, 'write a valid label key')
    if (typeof value !== 'string' || !isLabelValue(value))
      return unreadable(`${field}.matchLabels[${key}]`, `is ${shown(value)}`, 'write a valid label value')
  }
  if (!Array.isArray(matchExpressions))
    return unreadable(`${field}.matchExpressions`, 'is no list', 'write a list of key, operator and values')
  for (const [index, expression] of matchExpressions.entries()) {
    const path = `${field}.matchExpressions[${index}]`
    const problem = expressionProblem(expression)
    if (problem !== undefined) return unreadable(path, ...problem)
  }
  return undefined
}

function expressionProblem(expression: unknown): readonly [problem: string, fix: string] | undefined {
  const { key, operator, values = [] } = isRecord(expression) ? expression : {}
  if (typeof key !== 'string' || qualifiedNameProblem(key) !== undefined)
    return [`has the key ${shown(key)}`, 'write a valid label key']
  if (!['In', 'NotIn', 'Exists', 'DoesNotExist'].includes(String(operator)))
    return [`has the operator ${shown(operator)}`, 'use In, NotIn, Exists or DoesNotExist']
  const isList =
    Array.isArray(values) && values.every((value) => typeof value === 'string' && isLabelValue(value))
  if (!isList) return ['has values that are no label values', 'write a list of label values']
  const wantsValues = operator === 'In' || operator === 'NotIn'
  if (wantsValues !== values.length > 0)
    return [
      `has ${values.length} values with ${String(operator)}`,
      wantsValues ? 'write at least one value' : 'leave out values',
    ]
  return undefined
}

const unreadable = (field: string, problem: string, fix: string): UnreadableQuota => ({
  kind: 'unreadable',
  field,
  problem,
  fix,
})

/** A value in a message, cut off. */
const shown = (value: unknown): string => (JSON.stringify(value) ?? 'missing').slice(0, 60)
