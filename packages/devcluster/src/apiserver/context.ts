import type { Clock, Logger, Random } from '@tenon/runtime'
import type { KubernetesGates } from '../pod-group-kind.ts'
import type { Store } from '../storage/index.ts'
import type { WebhookCalls } from './admission/webhook-calls.ts'
import type { QuotaLedger } from './limits/quota-ledger.ts'
import type { Registry } from './kinds/registry.ts'
import type { User } from './authentication/user.ts'

/** What every part of the API server needs. */
export interface ServerContext {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly store: Store
  readonly registry: Registry
  readonly quotas: QuotaLedger
  /** Whether writes record field ownership in `metadata.managedFields`. */
  readonly recordsOwners: boolean
  /** Whether pods are refused for a ServiceAccount that does not exist, and by the Pod Security Standards. */
  readonly checksPods: boolean
  readonly gates: KubernetesGates
}

/** How unknown fields of a request body are treated. */
export type FieldValidation = 'Strict' | 'Warn' | 'Ignore'

/** Options of a write. */
export interface WriteOptions {
  /** Field manager recorded with the write. */
  readonly manager: string
  readonly fieldValidation: FieldValidation
  /** Everything but the commit is done. */
  readonly dryRun: boolean
  /** Collects warnings for the client. */
  readonly warnings: string[]
  /** For parts of this process: updates without a resourceVersion are allowed for every kind. */
  readonly internal: boolean
  /** Who writes. */
  readonly user: User
  /**
   * The responses of webhooks to this request; absent for parts of this process, which cannot wait for any.
   */
  readonly webhooks?: WebhookCalls
}

/** Identifies an object. */
export interface ObjectKey {
  readonly namespace: string | undefined
  readonly name: string
}
