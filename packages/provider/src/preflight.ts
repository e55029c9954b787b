/** What `tenon preflight` checks in a cloud: whether it can be reached and used. It changes nothing. */
import type { AccessRight, KubeClient, WatchingKubeClient } from '@tenon/kube'
import type { Clock, Logger, Runtime } from '@tenon/runtime'

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

/** A problem and its fix; both are clauses without a full stop. */
export interface PreflightFinding {
  /** Only `fail` keeps the autoscaler from its work. */
  readonly status: 'warn' | 'fail'
  /** Names the object and the field. */
  readonly message: string
  readonly fix: string
}

/** A check of node groups: one line of the report, or one for each finding. */
export interface NodeGroupCheck {
  readonly name: string
  /**
   * What cannot be found out is a finding too. Rejects with the error of a request, or with the signal's reason.
   * @returns `summary` says what was checked; it is printed if there are no findings.
   */
  run(
    signal: AbortSignal,
  ): Promise<{ readonly summary: string; readonly findings: readonly PreflightFinding[] }>
}

/** A cluster as preflight uses it: it only reads. */
export interface CheckedCluster {
  readonly client: Pick<WatchingKubeClient, 'get' | 'list' | 'servedKinds' | 'servedVersions'>
  /** URL of the API server. */
  readonly server: string
  /** Whose rights are asked for, as the subject of a sentence: `you`, `service account a/b`. */
  readonly who: string
  /** Whether the autoscaler has a right there. Rejects with KubeError if the server does not answer that. */
  isAllowed(right: AccessRight, signal: AbortSignal): Promise<boolean>
}

/** What checks of node groups receive; see {@link NodeGroupDependencies} for the flags. */
export interface NodeGroupPreflightDependencies {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The cluster of the nodes, and the one in which node groups are objects; often the same. */
  readonly clusters: { readonly workload: CheckedCluster; readonly management: CheckedCluster }
  readonly discoverySpecs: readonly string[]
  readonly nodeGroupSpecs: readonly string[]
  readonly allowsEmptyGroups: boolean
  readonly runtime: Runtime
  readonly userAgent: string
}

/** Checks of node groups, for `tenon preflight --mode cluster-autoscaler`. */
export interface NodeGroupPreflight {
  /** The API of the cloud; absent if node groups are objects of a cluster. */
  readonly access?: CloudAccess
  readonly checks: readonly NodeGroupCheck[]
}

/** What `tenon init --mode cluster-autoscaler` writes about node groups. */
export interface NodeGroupValues {
  /** Values of the chart, such as `autoDiscovery`; absent if no node group can be named. */
  readonly values?: Readonly<Record<string, unknown>>
  /** Sentences for the head of the file. */
  readonly remarks: readonly string[]
}
