/** How far a ProvisioningRequest is, as its conditions tell (gangs.md 2). */
import { conditionOf, type NewCondition } from '../conditions.ts'
import type { ProvisioningRequest } from '../karpenter/types.ts'
import type { Condition } from '../objects.ts'
import { ownValue } from '../own.ts'

/** `check` looks for room on nodes that are there, `atomic` launches what is missing. */
export type RequestClass = 'check' | 'atomic'

/** Names of the provisioning classes that are served. */
export const provisioningClasses: Readonly<Record<RequestClass, string>> = {
  check: 'check-capacity.autoscaling.x-k8s.io',
  atomic: 'best-effort-atomic-scale-up.autoscaling.x-k8s.io',
}

/** @param name of a provisioning class. @returns undefined for one that somebody else serves. */
export function requestClassOf(name: string): RequestClass | undefined {
  return name === provisioningClasses.check
    ? 'check'
    : name === provisioningClasses.atomic
      ? 'atomic'
      : undefined
}

/** Times are Unix milliseconds. */
export type RequestStage =
  /** Room is sought; `triedMs`: when it was not found last. */
  | { readonly kind: 'sought'; readonly triedMs: number | undefined }
  /** There is room, and it is kept since then. */
  | { readonly kind: 'booked'; readonly sinceMs: number }
  | { readonly kind: 'ended' }
  /** Somebody has to say first whether there is room. */
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

/** Reason of `Provisioned=False` while nodes are on their way; that is no attempt that has failed. */
export const beingProvisioned = 'CapacityIsBeingProvisioned'

/** A request that never got room ends after this. */
export const requestLifeMs = 7 * 24 * 60 * 60_000

/**
 * Its conditions with this one in place of the one of its type. The time is that of the write, also when the status
 * stays: clocks count from it.
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

/** Whether the request is not to be tried again; any other value of the parameter counts as false. */
export function isTriedOnce({ spec }: ProvisioningRequest): boolean {
  return ownValue(spec.parameters, 'noRetry') === 'true'
}

/** How far a request is, in one word, as metrics tell it. */
export type RequestState = 'sought' | 'waiting' | 'booked' | 'expired' | 'failed'

/** @param isSought whether decisions are about it, where room is sought for it. */
export function requestStateOf(request: ProvisioningRequest, isSought: boolean): RequestState {
  const { kind } = requestStageOf(request)
  if (kind === 'booked') return 'booked'
  if (kind === 'ended') return conditionOf(request, 'Failed')?.status === 'True' ? 'failed' : 'expired'
  return isSought ? 'sought' : 'waiting'
}

/** Classes as metrics call them. */
export const requestClassNames = {
  check: 'check-capacity',
  atomic: 'best-effort-atomic-scale-up',
} as const satisfies Readonly<Record<RequestClass, string>>
