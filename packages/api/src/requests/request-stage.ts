/** The progress of a ProvisioningRequest, read from its conditions (gangs.md 2). */
import { conditionOf, type NewCondition } from '../conditions.ts'
import type { ProvisioningRequest } from '../karpenter/types.ts'
import type { Condition } from '../objects.ts'
import { ownValue } from '../own.ts'

/** `check` only uses existing nodes, `atomic` launches missing ones. */
export type RequestClass = 'check' | 'atomic'

export const provisioningClasses: Readonly<Record<RequestClass, string>> = {
  check: 'check-capacity.autoscaling.x-k8s.io',
  atomic: 'best-effort-atomic-scale-up.autoscaling.x-k8s.io',
}

/** @returns undefined for a class that another controller serves. */
export function requestClassOf(name: string): RequestClass | undefined {
  return name === provisioningClasses.check
    ? 'check'
    : name === provisioningClasses.atomic
      ? 'atomic'
      : undefined
}

/** Times are Unix milliseconds. */
export type RequestStage =
  /** No capacity was found yet. `triedMs`: the last failed attempt. */
  | { readonly kind: 'sought'; readonly triedMs: number | undefined }
  /** Capacity was found and is kept since then. */
  | { readonly kind: 'booked'; readonly sinceMs: number }
  | { readonly kind: 'ended' }
  /** `Provisioned` has the status Unknown. */
  | { readonly kind: 'unknown' }

export function requestStageOf(request: ProvisioningRequest): RequestStage {
  const isTrue = (type: string) => conditionOf(request, type)?.status === 'True'
  if (isTrue('Failed') || isTrue('BookingExpired')) return { kind: 'ended' }
  const provisioned = conditionOf(request, 'Provisioned')
  if (provisioned === undefined) return { kind: 'sought', triedMs: undefined }
  const atMs = Date.parse(provisioned.lastTransitionTime)
  if (provisioned.status === 'True') return { kind: 'booked', sinceMs: Number.isNaN(atMs) ? 0 : atMs }
  if (provisioned.status !== 'False') return { kind: 'unknown' }
  const isTried = provisioned.reason !== beingProvisioned && !Number.isNaN(atMs)
  return { kind: 'sought', triedMs: isTried ? atMs : undefined }
}

/** Reason of `Provisioned=False` while nodes are launching; not a failed attempt. */
export const beingProvisioned = 'CapacityIsBeingProvisioned'

/** A request without capacity expires after this time. */
export const requestLifeMs = 7 * 24 * 60 * 60_000

/**
 * Sets a condition. Its transition time changes even if its status does not, as deadlines count from the last
 * write.
 * @param at RFC 3339.
 */
export function withRequestCondition(
  request: ProvisioningRequest,
  { type, status, reason = type, message = '' }: NewCondition,
  at: string,
): readonly Condition[] {
  const { generation: observedGeneration = 0 } = request.metadata
  const next: Condition = { type, status, reason, message, lastTransitionTime: at, observedGeneration }
  const stored = request.status?.conditions ?? []
  return stored.some((condition) => condition.type === type)
    ? stored.map((condition) => (condition.type === type ? next : condition))
    : [...stored, next]
}

/** Whether the request must not be retried; only `true` sets it. */
export function isTriedOnce({ spec }: ProvisioningRequest): boolean {
  return ownValue(spec.parameters, 'noRetry') === 'true'
}

/** The state as metrics report it. */
export type RequestState = 'sought' | 'waiting' | 'booked' | 'expired' | 'failed'

/** @param isSought whether a decision about it is pending. */
export function requestStateOf(request: ProvisioningRequest, isSought: boolean): RequestState {
  const { kind } = requestStageOf(request)
  if (kind === 'booked') return 'booked'
  if (kind === 'ended') return conditionOf(request, 'Failed')?.status === 'True' ? 'failed' : 'expired'
  return isSought ? 'sought' : 'waiting'
}

/** Names of the classes in metrics. */
export const requestClassNames = {
  check: 'check-capacity',
  atomic: 'best-effort-atomic-scale-up',
} as const satisfies Readonly<Record<RequestClass, string>>
