/** What `tenon preflight` asks of a cloud: whether it can be reached, and may be used. Nothing is changed by it. */
import type { KubeClient } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'

/** What the cloud said when an operation was tried. Messages are for people, and hold no secret. */
export type OperationAnswer =
  /** It may be called. */
  | { readonly kind: 'allowed' }
  /** The credentials are good, but do not allow it. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The credentials are not accepted. */
  | { readonly kind: 'unauthorized'; readonly message: string }
  /** Nothing can be told from the answer, or there was none. */
  | { readonly kind: 'unknown'; readonly message: string }

/** An operation of the cloud's API that the provider calls. */
export interface CloudOperation {
  /** As the cloud's own roles name it. */
  readonly name: string
  /** What does not work without it, where the rest still does: a clause. Absent for what nothing works without. */
  readonly optional?: string
  /**
   * Tries it in a way that changes nothing: by reading, or about an object that does not exist.
   * Rejects only with the signal's reason.
   */
  attempt(signal: AbortSignal): Promise<OperationAnswer>
}

/** A cloud as the settings lead to it. */
export interface CloudAccess {
  /** Names of hosts that have to resolve, in the cluster too. */
  readonly hosts: readonly string[]
  readonly operations: readonly CloudOperation[]
  /** What to do when the credentials are not accepted: a clause such as `check CLOUD_TOKEN`. */
  readonly credentialsFix: string
  /** What to do about operations that are refused: a clause with their names. */
  grantFix(operations: readonly string[]): string
}

/** What a {@link PreflightModule} is given. */
export interface PreflightDependencies {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Of the cluster; preflight only reads. */
  readonly kube: Pick<KubeClient, 'get' | 'list'>
  readonly clock: Clock
  readonly logger: Logger
  readonly userAgent: string
}

/** Asks a cloud, for `tenon preflight`. */
export interface PreflightModule {
  /** @throws ProviderSettingError for the first setting that is missing or wrong. */
  open(dependencies: PreflightDependencies): CloudAccess
}
