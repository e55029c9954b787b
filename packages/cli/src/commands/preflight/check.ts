/** What the checks of `tenon preflight` are made of, and what they find. */
import type { AccessReviews, KubeClient } from '@tenon/kube'
import type { RightsSetting } from '@tenon/operator'
import type { CloudAccess, ProviderModule } from '@tenon/provider'
import type { Clock, Transport } from '@tenon/runtime'
import type { RunningAutoscaler } from '../../source/autoscalers.ts'

/** What has been found out about the cloud. */
export type Cloud =
  /** Nobody has named it, and no node tells. */
  | { readonly kind: 'unknown' }
  /** There is nothing to ask. */
  | { readonly kind: 'silent'; readonly module: ProviderModule }
  /** Its settings are missing or wrong. */
  | { readonly kind: 'unset'; readonly module: ProviderModule; readonly message: string }
  | { readonly kind: 'open'; readonly module: ProviderModule; readonly access: CloudAccess }

/** How Tenon is, or will be, installed. */
export interface Installation {
  readonly namespace: string
  readonly leaseName: string
  readonly replicas: number
  /** Requests of each pod of the controller, in canonical units. */
  readonly requests: Readonly<Record<string, number>>
  /** Settings that are on and come with rights of their own. */
  readonly settings: ReadonlySet<RightsSetting>
  /** `NAMESPACE/NAME`; absent when there is none yet. */
  readonly serviceAccount?: string
}

export interface PreflightContext {
  /** To the API server, for what the client does not tell. */
  readonly transport: Transport
  readonly kube: KubeClient
  readonly access: AccessReviews
  readonly clock: Clock
  readonly cloud: Cloud
  readonly installation: Installation
  /** Every Deployment that runs an autoscaler of nodes, or why they cannot be read. */
  readonly autoscalers: readonly RunningAutoscaler[] | Error
  /** Rejects when the host has no address. */
  readonly resolveHost: (host: string) => Promise<void>
}

/** A check. It may reject: that is a failed check. */
export interface Check {
  readonly name: string
  readonly run: (context: PreflightContext, signal: AbortSignal) => Promise<CheckOutcome>
}

/** How bad it is: only `fail` keeps an installation from working. */
export type CheckStatus = 'ok' | 'warn' | 'fail'

/** Something that is wrong, and what to do. */
export interface Finding {
  readonly status: 'warn' | 'fail'
  /** A clause without a full stop; names the object and the field. */
  readonly message: string
  /** A clause without a full stop. */
  readonly fix: string
}

/** What a check came to. */
export interface CheckOutcome {
  /** What was found in order; told when there are no findings. */
  readonly summary: string
  readonly findings: readonly Finding[]
}

/** A check that has ended. */
export interface CheckResult extends CheckOutcome {
  readonly name: string
  readonly durationMs: number
}

/** The worst of a result. */
export function statusOf({ findings }: Pick<CheckOutcome, 'findings'>): CheckStatus {
  if (findings.some(({ status }) => status === 'fail')) return 'fail'
  return findings.length > 0 ? 'warn' : 'ok'
}

/** A list for a sentence; of a long one the first few, and how many more there are. */
export function few(items: readonly string[], most = 5): string {
  const rest = items.length - most
  return rest <= 0 ? items.join(', ') : `${items.slice(0, most).join(', ')} and ${rest} more`
}
