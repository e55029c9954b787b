/** The interface of a simulated cloud for `tenon up` and `tenon devcluster`. */
import type { PricePerHour } from '@tenon/api'
import type { CloudSimulator, SimulatedCloud } from '@tenon/devcluster'
import type { HttpHandler } from '@tenon/runtime'

/** An instance that a simulated cloud bills for. */
export interface SimulatedInstance {
  /** That of its Node. */
  readonly name: string
  /** In the cloud's {@link SimulatedProvider.priceUnit}; undefined when the price is not known. */
  readonly pricePerHour: PricePerHour
}

/** A simulated cloud as the command line uses it. */
export interface SimulatedProvider extends SimulatedCloud {
  /** The cloud's own API over HTTP; absent when the cloud is used through objects of the cluster. */
  readonly api?: {
    /** What its paths begin with, such as `/v2`. */
    readonly path: string
    readonly handle: HttpHandler
    /** Is told where the API is reached: `http://host:port` and {@link path}. */
    readonly announce: (url: string) => void
  }
  /** What its prices are told in; `EUR` when absent. */
  readonly priceUnit?: string
  /** In the order of their creation. */
  instances(): readonly SimulatedInstance[]
}

/** How quick a simulated cloud is. */
export interface SimulationPace {
  /** Milliseconds that every instance takes to boot; the simulator's own, when absent. */
  readonly bootDelayMs?: number
  /** Whether everything is quicker than in the real cloud, so that nobody waits for a demonstration. */
  readonly isHurried?: boolean
  /** Whether the cloud begins with the node groups of {@link ProviderSimulator.nodeGroups}. */
  readonly hasNodeGroups?: boolean
}

/** Where the parts of a running simulation are reached. */
export interface SimulationPlace {
  /** URL of the cluster's API server. */
  readonly apiUrl: string
  /** Absolute path of the cluster's kubeconfig. */
  readonly kubeconfig: string
  /** URL of the cloud's own API; absent when it has none. */
  readonly cloudUrl?: string
}

/** What `tenon up --demo` plays in this cloud. */
export interface GuidedTour {
  /** What a new cluster is called, for example `managed cluster`. */
  readonly cluster: string
  /** YAML of the node class, named `standard`. */
  readonly nodeClass: string
  /** YAML of its NodePool, named `standard`, which chooses among the smallest general types. */
  readonly nodePool: string
  /** Why the node class becomes ready. */
  readonly whyReady: string
  /** The cheapest type of the NodePool, on which the small workload ends. */
  readonly smallType: string
  /** How many of that type hold the system pods and three pods of 1 CPU and 1 GiB; two at least. */
  readonly smallInstances: number
  /** Price of an instance type for one hour, in the cloud's {@link SimulatedProvider.priceUnit}. */
  readonly priceOf: (instanceType: string) => PricePerHour
  /**
   * A second NodePool named `gpu`, with the taint `nvidia.com/gpu`, that goes as soon as it is empty; absent in a
   * cloud without GPUs.
   */
  readonly gpu?: { readonly manifests: string; readonly families: string }
  /**
   * A second NodePool named `team`, with label and taint `team=platform`, that goes as soon as it is empty: the step
   * of a cloud without GPUs.
   */
  readonly team?: { readonly manifests: string }
  /** Where to read on, as a path in the repository. */
  readonly readOn: string
}

/** A simulator and what is tried with it. */
export interface ProviderSimulator {
  /** Makes the cloud; it holds what {@link demonstration} and the documented examples refer to. */
  readonly cloud: (pace: SimulationPace) => CloudSimulator<SimulatedProvider>
  /** Variables with which the module's `open` uses this cloud instead of the real one. */
  readonly settings: (place: SimulationPlace) => Readonly<Record<string, string>>
  /** YAML of a node class, a NodePool and a small workload. */
  readonly demonstration: string
  readonly tour?: GuidedTour
  /** For `tenon up --mode cluster-autoscaler`; absent when the cloud simulates none. */
  readonly nodeGroups?: {
    /** Values of `--nodes`. */
    readonly specs: readonly string[]
    /** YAML of a small workload that makes the groups grow. */
    readonly demonstration: string
  }
}
