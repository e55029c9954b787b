/** Test cases of NodePools (ask.md 7). */
import type { KubeObject, OfferingRef, PodSpec } from '@tenon/api'

/** Pods of one workload. */
interface CasePods {
  readonly name: string
  readonly namespace: string
  readonly count: number
  readonly labels: Readonly<Record<string, string>>
  readonly spec: PodSpec
}

export type CaseStep =
  | { readonly kind: 'pods'; readonly pods: CasePods }
  /** Objects as the API server would store them: new workloads, changed NodePools. */
  | { readonly kind: 'apply'; readonly objects: readonly KubeObject[] }
  | { readonly kind: 'delete'; readonly object: string }
  | { readonly kind: 'scale'; readonly workload: string; readonly replicas: number }
  /** An offering becomes unavailable; a missing field matches any. */
  | { readonly kind: 'lose'; readonly offering: Partial<OfferingRef> }
  | { readonly kind: 'price'; readonly instanceType: string; readonly pricePerHour: number }
  /** Time passes, after all other steps. */
  | { readonly kind: 'pass'; readonly ms: number }

/** What a case expects; missing fields are not checked. */
export interface CaseExpectations {
  /** Pods of the case that run: all of them, or a number. */
  readonly running?: 'all' | number
  /** The only NodePools whose nodes may run pods of the case. */
  readonly nodePools?: readonly string[]
  /** Instance types that may be launched, and types that must not be. */
  readonly instanceTypes?: readonly string[]
  readonly noInstanceTypes?: readonly string[]
  readonly nodesAtMost?: number
  /** Of all nodes. */
  readonly pricePerHourAtMost?: number
  /** Whether the numbers of the case's pods per zone differ by one at most. */
  readonly zonesBalanced?: true
  /** Whether no pod is evicted while time passes. */
  readonly noDisruption?: true
  /** Pods that stay pending. The reason is a code of the engine; default: any. */
  readonly pending?: readonly { readonly pod: string; readonly reason?: string }[]
}

export interface Case {
  readonly name: string
  readonly when: readonly CaseStep[]
  readonly expect: CaseExpectations
}

/** An expectation that was not met. */
export interface CaseFailure {
  /** Such as `expect.nodesAtMost`. */
  readonly field: string
  readonly expected: string
  readonly found: string
  /** Why a pod is pending, if one is. */
  readonly explanation?: string
}

/** The result of a case. */
export interface CaseOutcome {
  readonly failures: readonly CaseFailure[]
  /** The observed values, for `--update`. */
  readonly observed: CaseExpectations
}
