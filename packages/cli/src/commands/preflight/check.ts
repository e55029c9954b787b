/** Types of the checks of `tenon preflight` and their results. */
import type { AccessReviews, KubeClient } from '@tenon/kube'
import type { RightsSetting } from '@tenon/operator'
import type { CloudAccess, ProviderModule } from '@tenon/provider'
import type { Clock, Transport } from '@tenon/runtime'
import type { RunningAutoscaler } from '../../source/autoscalers.ts'

/** What is known about the cloud. */
export type Cloud =
  /** No flag names it, and no node reveals it. */
  | { readonly kind: 'unknown' }
  /** The provider has no access check. */
  | { readonly kind: 'silent'; readonly module: ProviderModule }
  /** A setting is missing or invalid. */
  | { readonly kind: 'unset'; readonly module: ProviderModule; readonly message: string }
  | { readonly kind: 'open'; readonly module: ProviderModule; readonly access: CloudAccess }

/** How Tenon is or will be installed. */
export interface Installation {
  readonly namespace: string
  readonly leaseName: string
  readonly replicas: number
  /** Requests of each pod of the controller, in canonical units. */
  readonly requests: Readonly<Record<string, number>>
  /** Enabled settings that require additional rights. */
  readonly settings: ReadonlySet<RightsSetting>
  /** Whether feature gate NodeRepair is on. */
  readonly isRepairing: boolean
  /** `NAMESPACE/NAME`; absent if it does not exist yet. */
  readonly serviceAccount?: string
}

export interface PreflightContext {
  /** To the API server, for what the client does not offer. */
  readonly transport: Transport
  readonly kube: KubeClient
  readonly access: AccessReviews
  readonly clock: Clock
  readonly cloud: Cloud
  readonly installation: Installation
  /** Deployments that run an autoscaler of nodes, or why they cannot be listed. */
  readonly autoscalers: readonly RunningAutoscaler[] | Error
  /** Rejects if the host cannot be resolved. */
  readonly resolveHost: (host: string) => Promise<void>
}

/** A check. If it rejects, it has failed. */
export interface Check {
  readonly name: string
  readonly run: (context: PreflightContext, signal: AbortSignal) => Promise<CheckOutcome>
}

/** Only `fail` keeps an installation from working. */
export type CheckStatus = 'ok' | 'warn' | 'fail'

/** A problem and its fix. */
export interface Finding {
  readonly status: 'warn' | 'fail'
  /** A clause without a full stop; names the object and the field. */
  readonly message: string
  /** A clause without a full stop. */
  readonly fix: string
}

export interface CheckOutcome {
  /** What was checked; printed if there are no findings. */
  readonly summary: string
  readonly findings: readonly Finding[]
}

export interface CheckResult extends CheckOutcome {
  readonly name: string
  readonly durationMs: number
}

/** The worst status of its findings. */
export function statusOf({ findings }: Pick<CheckOutcome, 'findings'>): CheckStatus {
  if (findings.some(({ status }) => status === 'fail')) return 'fail'
  return findings.length > 0 ? 'warn' : 'ok'
}

/** A list for a sentence; of a long one the first few, and the number of the rest. */
export function few(items: readonly string[], most = 5): string {
  const rest = items.length - most
  return rest <= 0 ? items.join(', ') : `${items.slice(0, most).join(', ')} and ${rest} more`
}
