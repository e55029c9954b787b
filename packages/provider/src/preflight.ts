/** What `tenon preflight` checks in a cloud: whether it can be reached and used. It changes nothing. */
import type { KubeClient } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'

/** The result of trying an operation. Messages are for people and contain no secret. */
export type OperationAnswer =
  /** Allowed. */
  | { readonly kind: 'allowed' }
  /** The credentials are valid but not sufficient. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The credentials are invalid. */
  | { readonly kind: 'unauthorized'; readonly message: string }
  /** No response, or one that proves nothing. */
  | { readonly kind: 'unknown'; readonly message: string }

/** An operation of the cloud's API that the provider uses. */
export interface CloudOperation {
  /** As in the cloud's own roles. */
  readonly name: string
  /** What does not work without it, while the rest does: a clause. Absent if nothing works without it. */
  readonly optional?: string
  /**
   * Tries it without changing anything: by reading, or on an object that does not exist. Only rejects with the signal's
   * reason.
   */
  attempt(signal: AbortSignal): Promise<OperationAnswer>
}

/** The cloud that the settings describe. */
export interface CloudAccess {
  /** Host names that must resolve, in the cluster too. */
  readonly hosts: readonly string[]
  readonly operations: readonly CloudOperation[]
  /** What to do about invalid credentials: a clause such as `check CLOUD_TOKEN`. */
  readonly credentialsFix: string
  /** What to do about refused operations: a clause with their names. */
  grantFix(operations: readonly string[]): string
}

/** What a {@link PreflightModule} receives. */
export interface PreflightDependencies {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The cluster; preflight only reads. */
  readonly kube: Pick<KubeClient, 'get' | 'list'>
  readonly clock: Clock
  readonly logger: Logger
  readonly userAgent: string
}

/** Checks a cloud, for `tenon preflight`. */
export interface PreflightModule {
  /** @throws ProviderSettingError for the first missing or invalid setting. */
  open(dependencies: PreflightDependencies): CloudAccess
}
