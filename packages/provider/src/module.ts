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

/** Environment variables, those of a module's options included. */
export type ProviderEnvironment = Readonly<Record<string, string | undefined>>

/** An option of one provider; a flag beats its variable, which beats the default. */
export interface ProviderOption {
  /** Without dashes. */
  readonly flag: string
  /** The value arrives in the provider's environment under this name. */
  readonly variable: string
  /** How the value is checked. A duration arrives in milliseconds. */
  readonly kind: 'text' | 'name' | 'integer' | 'boolean' | 'duration'
  /** As a user would write it; empty for none. */
  readonly fallback: string
  /** Name of the value in help, for example `PATH`. */
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
  /** URL of the API server as this process sees it. */
  readonly server: string
}

/** A problem that `tenon validate` reports of an object. */
export interface OfflineFinding {
  readonly severity: 'error' | 'warning'
  /** Path in the object; empty for the object as a whole. */
  readonly field: string
  readonly message: string
  /** What to write instead. */
  readonly fix?: string
}

/** Instance types that a NodePool may choose from. */
export interface OfflineTypes {
  /** In the zone that is asked for. */
  readonly offered: readonly InstanceType[]
  /** In any zone. */
  readonly known: readonly InstanceType[]
  /** Set when there may be others: nothing is wrong with a NodePool that none of these suits. */
  readonly isPartial?: true
}

/** What a provider knows of NodePools and node classes without its cloud. */
export interface OfflineCatalogue {
  /** Those of the provider itself. */
  readonly rules: PoolRules
  /**
   * The types that pools of a node class choose from; of its defaults when it is not known.
   * @param others objects among the files of kinds that no provider of Tenon serves.
   */
  readonly typesOf: (nodeClass: KubeObject | undefined, others?: readonly KubeObject[]) => OfflineTypes
  /** As {@link CloudProvider.currency} has it. */
  readonly priceUnit?: string
  /** What is wrong with a node class that the API server admits. */
  readonly findingsOf: (nodeClass: KubeObject) => readonly OfflineFinding[]
  /** What is wrong with an object that node classes choose from, as a user writes it. */
  readonly sourceFindingsOf?: (object: KubeObject) => readonly OfflineFinding[]
  /** What is wrong with files that the options name. */
  readonly problems: readonly { readonly file: string; readonly message: string }[]
}

/**
 * All that Tenon knows of a cloud before it is asked: the command line, `tenon validate`, help and the printed
 * CustomResourceDefinitions are made from it. The module itself loads nothing else; its functions load what they need.
 */
export interface ProviderModule {
  /** The value of `--provider`, for example `my-cloud`. */
  readonly name: string
  /** As people write it, for example `My Cloud`. */
  readonly title: string
  /** The first is the default. */
  readonly nodeClasses: readonly ResourceType<NodeClass>[]
  /** Options of `tenon controller`. */
  readonly options: readonly ProviderOption[]
  /** Options of `tenon validate`. */
  readonly validateOptions: readonly ProviderOption[]
  /** Command lines for help. */
  readonly examples?: {
    /** Of `tenon controller`, in lines of at most 98 characters. */
    readonly controller?: readonly string[]
    /** Of `tenon validate`. */
    readonly validate?: readonly string[]
  }
  /** Node classes of earlier releases, `apiVersion kind`, with what to write instead. */
  readonly formerNodeClasses: Readonly<Record<string, string>>
  /** CustomResourceDefinitions of the node classes. */
  crds(): Promise<readonly object[]>
  /**
   * Makes the provider.
   * @throws ProviderSettingError for a setting that is missing or wrong, another error when the cloud cannot be used.
   */
  open(dependencies: ProviderDependencies): Promise<CloudProvider>
  /**
   * Makes the catalogue for `tenon validate`.
   * @param readText reads a file that an option names; rejects when it cannot be read.
   * @throws ProviderSettingError for an option that is wrong.
   */
  offline(env: ProviderEnvironment, readText: (path: string) => Promise<string>): Promise<OfflineCatalogue>
  /** For `tenon up` and `tenon devcluster`; absent when the cloud cannot be simulated. */
  readonly simulator?: () => Promise<ProviderSimulator>
  /** For `tenon cluster-autoscaler`; absent when the cloud has no groups that it scales. */
  readonly nodeGroups?: () => Promise<NodeGroupModule>
  /** For the chart that installs Tenon; absent when that does not offer the cloud. */
  readonly chart?: () => Promise<ProviderChart>
  /** For `tenon init`; absent when its node groups are not known. */
  readonly survey?: () => Promise<SurveyModule>
  /** For `tenon preflight`; absent when there is nothing to ask of the cloud. */
  readonly preflight?: () => Promise<PreflightModule>
}

/** A setting of a provider is missing or wrong. The message names the setting and the fix, and holds no secret. */
export class ProviderSettingError extends Error {
  /** The environment variable that is wrong, where the message does not name it. */
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
