/** Cases of NodePools under test (ask.md 7). */
import type { KubeObject, OfferingRef, PodSpec } from '@tenon/api'

/** Pods of one workload, as a case writes them. */
interface CasePods {
  readonly name: string
  readonly namespace: string
  readonly count: number
  readonly labels: Readonly<Record<string, string>>
  readonly spec: PodSpec
}

/** One thing that happens. */
export type CaseStep =
  | { readonly kind: 'pods'; readonly pods: CasePods }
  /** Objects as the API server would store them: workloads that are created, NodePools that are edited. */
  | { readonly kind: 'apply'; readonly objects: readonly KubeObject[] }
  | { readonly kind: 'delete'; readonly object: string }
  | { readonly kind: 'scale'; readonly workload: string; readonly replicas: number }
  /** An offering that cannot be bought any more; what is absent means any. */
  | { readonly kind: 'lose'; readonly offering: Partial<OfferingRef> }
  | { readonly kind: 'price'; readonly instanceType: string; readonly pricePerHour: number }
  /** Time that passes, after all other steps. */
  | { readonly kind: 'pass'; readonly ms: number }

/** What a case demands; what is absent is not looked at. */
export interface CaseExpectations {
  /** Pods that run, of those of the case: all of them, or so many. */
  readonly running?: 'all' | number
  /** The only NodePools whose nodes take pods of the case. */
  readonly nodePools?: readonly string[]
  /** The only instance types that are launched, and types that are not. */
  readonly instanceTypes?: readonly string[]
  readonly noInstanceTypes?: readonly string[]
  readonly nodesAtMost?: number
  /** Of all nodes. */
  readonly pricePerHourAtMost?: number
  /** Whether pods of the case are spread over zones that differ by one pod at most. */
  readonly zonesBalanced?: true
  /** Whether no pod is evicted in the time that passes. */
  readonly noDisruption?: true
  /** Pods that stay pending; the reason is a code of the engine, any unless given. */
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
  /** Why, where a pod waits. */
  readonly explanation?: string
}

/** What came out of a case. */
export interface CaseOutcome {
  readonly failures: readonly CaseFailure[]
  /** What was observed, for `--update`. */
  readonly observed: CaseExpectations
}
