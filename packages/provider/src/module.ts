import type { InstanceType, KubeObject, NodeClass, ResourceType } from '@tenon/api'
import type { CacheRegistry, EventRecorder, WatchingKubeClient } from '@tenon/kube'
import type { Runtime } from '@tenon/runtime'
import type { ProviderChart } from './chart.ts'
import type { CloudRequests } from './cloud-requests.ts'
import type { CloudProvider, PoolRules } from './contract.ts'
import type { NodeGroupModule } from './node-groups.ts'
import type { PreflightModule } from './preflight.ts'
import type { ProviderSimulator } from './simulator.ts'
import type { SurveyModule } from './survey.ts'

/** Environment variables, including the options of a module. */
export type ProviderEnvironment = Readonly<Record<string, string | undefined>>

/** An option of one provider. The flag overrides the variable, which overrides the default. */
export interface ProviderOption {
  /** Without dashes. */
  readonly flag: string
  /** The provider's environment contains the value under this name. */
  readonly variable: string
  /** How the value is checked. Durations are passed in milliseconds. */
  readonly kind: 'text' | 'name' | 'integer' | 'boolean' | 'duration'
  /** As a user would write it; empty for none. */
  readonly fallback: string
  /** The value's name in help texts, such as `PATH`. */
  readonly takes: string
  /** One sentence for help and documentation. */
  readonly meaning: string
}

/** What a provider is opened with. */
export interface ProviderDependencies {
  readonly env: ProviderEnvironment
  readonly kubernetes: ProviderKubernetes
  readonly cloud: CloudRequests
  readonly runtime: Runtime
}

/** The Kubernetes API as a provider uses it. */
export interface ProviderKubernetes {
  readonly client: WatchingKubeClient
  /** The caches of this process, not started yet. */
  readonly registry: CacheRegistry
  readonly events: EventRecorder
  /** URL of the API server as this process uses it. */
  readonly server: string
}

/** A problem of an object that `tenon validate` reports. */
export interface OfflineFinding {
  readonly severity: 'error' | 'warning'
  /** Path in the object; empty for the whole object. */
  readonly field: string
  readonly message: string
  /** What to write instead. */
  readonly fix?: string
}

/** Instance types of a NodePool. */
export interface OfflineTypes {
  /** Types that are offered in the zone that the node class selects. */
  readonly offered: readonly InstanceType[]
  /** Types that are offered in any zone. */
  readonly known: readonly InstanceType[]
  /** Set if other types may exist: a NodePool for which none is suitable is not a problem then. */
  readonly isPartial?: true
}

/** What a provider knows of NodePools and node classes without its cloud. */
export interface OfflineCatalogue {
  /** The provider's own rules. */
  readonly rules: PoolRules
  /**
   * The types for pools of a node class; for its defaults if the node class is undefined.
   * @param others objects in the files whose kinds belong to no provider of Tenon.
   */
  readonly typesOf: (nodeClass: KubeObject | undefined, others?: readonly KubeObject[]) => OfflineTypes
  /** See {@link CloudProvider.currency}. */
  readonly priceUnit?: string
  /** Problems of a node class that the API server accepts. */
  readonly findingsOf: (nodeClass: KubeObject) => readonly OfflineFinding[]
  /** Problems of a user's object that node classes refer to. */
  readonly sourceFindingsOf?: (object: KubeObject) => readonly OfflineFinding[]
  /** Problems of files that options name. */
  readonly problems: readonly { readonly file: string; readonly message: string }[]
}

/**
 * All that Tenon knows of a cloud before it is used: the source of the command line, `tenon validate`, help, and
 * printed CustomResourceDefinitions. The module loads nothing else by itself; its functions load what they need.
 */
export interface ProviderModule {
  /** The value of `--provider`, such as `my-cloud`. */
  readonly name: string
  /** As written in texts, such as `My Cloud`. */
  readonly title: string
  /** Whether its provider states repair policies, so that node repair can be recommended. Default: no. */
  readonly repairsNodes?: boolean
  /** The first is the default. */
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  /** Options of `tenon controller`. */
  readonly options: readonly ProviderOption[]
  /** Options of `tenon validate`. */
  readonly validateOptions: readonly ProviderOption[]
  /** Example command lines for help. */
  readonly examples?: {
    /** For `tenon controller`, in lines of at most 98 characters. */
    readonly controller?: readonly string[]
    /** For `tenon validate`. */
    readonly validate?: readonly string[]
    /** For `tenon preflight`. */
    readonly preflight?: readonly string[]
  }
  /** Node classes of earlier releases, `apiVersion kind`, with what to write instead. */
  readonly formerNodeClasses: Readonly<Record<string, string>>
  /** CustomResourceDefinitions of the node classes. */
  crds(): Promise<readonly object[]>
  /**
   * Creates the provider.
   * @throws ProviderSettingError for a missing or invalid setting, another error if the cloud cannot be used.
   */
  open(dependencies: ProviderDependencies): Promise<CloudProvider>
  /**
   * Creates the catalogue for `tenon validate`.
   * @param readText reads a file that an option names; rejects if it cannot be read.
   * @throws ProviderSettingError for an invalid option.
   */
  offline(env: ProviderEnvironment, readText: (path: string) => Promise<string>): Promise<OfflineCatalogue>
  /** For `tenon up` and `tenon devcluster`; absent if there is no simulator. */
  readonly simulator?: () => Promise<ProviderSimulator>
  /** The value of `--cloud-provider` for its node groups. Default: {@link name}. */
  readonly nodeGroupsCloud?: string
  /** How `tenon migrate` names a node group; absent if it cannot migrate them. */
  readonly nodeGroupKind?: string
  /** For `tenon cluster-autoscaler`; absent if the cloud has no scalable node groups. */
  readonly nodeGroups?: () => Promise<NodeGroupModule>
  /** For the chart of Tenon; absent if the chart does not offer the cloud. */
  readonly chart?: () => Promise<ProviderChart>
  /** For `tenon init`; absent if node groups cannot be detected. */
  readonly survey?: () => Promise<SurveyModule>
  /** For `tenon preflight`; absent if there is nothing to check. */
  readonly preflight?: () => Promise<PreflightModule>
}

/**
 * A setting of a provider is missing or invalid. The message names the setting and the fix, and contains no secret.
 */
export class ProviderSettingError extends Error {
  /** The environment variable with the problem, if the message does not name it. */
  readonly variable: string | undefined

  constructor(message: string, variable?: string) {
    super(message)
    this.name = 'ProviderSettingError'
    this.variable = variable
  }
}

/** Whether an error is a {@link ProviderSettingError}, also of another copy of this package. */
export function isProviderSettingError(error: unknown): error is ProviderSettingError {
  return error instanceof Error && error.name === 'ProviderSettingError'
}
