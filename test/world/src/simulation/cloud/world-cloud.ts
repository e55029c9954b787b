/** The interface of a cloud in a simulation. */
import type { KubeObject, Node, ResourceType } from '@tenon/api'
import type { CloudProvider, ProviderKubernetes } from '@tenon/provider'
import type { Clock, HttpRequest, Logger, Random, Runtime, Transport } from '@tenon/runtime'
import type { FaultDependencies } from '../faults/api-faults.ts'

/** Changes the cloud or the cluster as a user would. */
interface Person {
  readonly dice: {
    chance(probability: number): boolean
    oneOf<T>(values: readonly [T, ...T[]]): T
  }
  patch(type: ResourceType, name: string, patch: object): void
  act(text: string, work: () => void): void
}

/** What NodePools of a world can buy. */
export interface Wares {
  readonly nodeClassKind: ResourceType
  readonly nodeClass: (name: 'standard' | 'gpu') => KubeObject
  /** Types of the general pools, smallest first; every shape of the workload fits some of them. */
  readonly types: readonly string[]
  /** Number of types in large worlds, which limits their size so that the node count is as the story says. */
  readonly typesInLarge: number
  readonly staticType: string
  /** Types that some pods select explicitly. */
  readonly choosyTypes: readonly string[]
  /** Empty if the cloud has none. */
  readonly gpuTypes: readonly string[]
  /** Publishes an image or changes the node class, so that nodes drift. */
  readonly drift: (person: Person) => void
}

/** An instance as the cloud sees it. */
export interface CloudInstance {
  readonly id: string
  readonly providerId: string
  /** The claim it was created for, according to its label; empty if none. */
  readonly claim: string
  readonly state: string
  /** Whether it is still billed. */
  readonly isAlive: boolean
}

/** What a write of a controller does in the cloud. */
export interface CloudDemand {
  /** Name of the claim for which an instance is created. */
  readonly launchFor?: string
  /** Provider ID of the instance that is deleted. */
  readonly end?: string
}

/** The arguments of a process's provider. */
interface ProviderParts {
  readonly kubernetes: ProviderKubernetes
  readonly runtime: Runtime
  /** The connection to the cloud's API. */
  readonly cloud: Transport
}

/** The cloud of one run. */
export interface WorldCloud {
  readonly wares: Wares
  /** Price per hour by type. */
  readonly prices: ReadonlyMap<string, number>
  /** A kind of the cloud's objects in the cluster that invariants want to follow. */
  readonly objects?: ResourceType
  readonly openProvider: (parts: ProviderParts) => Promise<CloudProvider>
  /** Instances that controllers created. */
  readonly instances: () => readonly CloudInstance[]
  /** What a write does in this cloud; undefined if nothing. */
  readonly demandOf: (request: HttpRequest) => CloudDemand | undefined
  /** Whether a node belongs to users alone. */
  readonly isForeign: (node: Node) => boolean
  /** Makes one instance disappear; returns its name, or undefined if there is none. */
  readonly loseOne: (random: Random) => string | undefined
  /** Starts the faults of the cloud and its users. Call the result when the calm phase begins. */
  readonly playFaults: (deps: FaultDependencies) => () => void
  /**
   * Descriptions of what should not be left at the end.
   * @param held names of Nodes with pods that may stay there for ever.
   */
  readonly leftovers: (held: ReadonlySet<string>) => readonly string[]
}

export interface CloudDeps {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}
