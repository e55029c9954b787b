/** The interface of a cloud in a simulation. */
import type { KubeObject, Node, ResourceType } from '@tenon/api'
import type { CloudProvider, ProviderKubernetes } from '@tenon/provider'
import type { Clock, HttpRequest, Logger, Random, Runtime, Transport } from '@tenon/runtime'
import type { FaultDependencies } from '../faults/api-faults.ts'

/** Whoever changes the cloud or the cluster as a person does. */
interface Person {
  readonly dice: {
    chance(probability: number): boolean
    oneOf<T>(values: readonly [T, ...T[]]): T
  }
  patch(type: ResourceType, name: string, patch: object): void
  act(text: string, work: () => void): void
}

/** What the pools of a world are made of. */
export interface Wares {
  readonly nodeClassKind: ResourceType
  readonly nodeClass: (name: 'standard' | 'gpu') => KubeObject
  /** Types of the general pools from the smallest on; every shape of the workload fits some of them. */
  readonly types: readonly string[]
  /** So many of them are sold in large worlds, so that these have as many nodes as the story says. */
  readonly typesInLarge: number
  readonly staticType: string
  /** What some pods insist on. */
  readonly choosyTypes: readonly string[]
  /** Empty where the cloud has none. */
  readonly gpuTypes: readonly string[]
  /** An image is published, or the node class changes: nodes drift. */
  readonly drift: (person: Person) => void
}

/** An instance as the cloud's side knows it. */
export interface CloudInstance {
  readonly id: string
  readonly providerId: string
  /** The claim that it was made for, as its label says; empty for one of nobody. */
  readonly claim: string
  readonly state: string
  /** Whether it goes on costing money. */
  readonly isAlive: boolean
}

/** What a write of a controller asks of the cloud. */
export interface CloudDemand {
  /** Name of the claim that an instance is asked for. */
  readonly launchFor?: string
  /** Provider ID of the instance that is to end. */
  readonly end?: string
}

/** What a process opens its provider with. */
interface ProviderParts {
  readonly kubernetes: ProviderKubernetes
  readonly runtime: Runtime
  /** The way to the cloud's own API. */
  readonly cloud: Transport
}

/** The cloud of one run. */
export interface WorldCloud {
  readonly wares: Wares
  /** Per hour, by type. */
  readonly prices: ReadonlyMap<string, number>
  /** Objects of the cluster that are the cloud's, as rules want to follow them. */
  readonly objects?: ResourceType
  readonly openProvider: (parts: ProviderParts) => Promise<CloudProvider>
  /** What controllers have had made. */
  readonly instances: () => readonly CloudInstance[]
  /** What a write asks of this cloud; undefined when it asks nothing. */
  readonly demandOf: (request: HttpRequest) => CloudDemand | undefined
  /** Whether a node is a matter of users alone. */
  readonly isForeign: (node: Node) => boolean
  /** One instance vanishes; answers its name, or undefined when there is none. */
  readonly loseOne: (random: Random) => string | undefined
  /** Sets and lifts what the cloud and its users do wrong. Call the result when the calm begins. */
  readonly playFaults: (deps: FaultDependencies) => () => void
  /** What is left in the end and should not be, in words. */
  readonly leftovers: () => readonly string[]
}

/** What the cloud of a run is made from. */
export interface CloudDeps {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}
