/** The interface of a simulated cloud for `tenon up` and `tenon devcluster`. */
import type { PricePerHour } from '@tenon/api'
import type { CloudSimulator, SimulatedCloud } from '@tenon/devcluster'
import type { HttpHandler } from '@tenon/runtime'

/** An instance of a simulated cloud that has a price. */
export interface SimulatedInstance {
  /** Name of its Node. */
  readonly name: string
  /** In the cloud's {@link SimulatedProvider.priceUnit}; undefined if the price is unknown. */
  readonly pricePerHour: PricePerHour
}

/** A simulated cloud as the command line uses it. */
export interface SimulatedProvider extends SimulatedCloud {
  /** The cloud's own API over HTTP; absent if the cloud is used through objects of the cluster. */
  readonly api?: {
    /** Prefix of its paths, such as `/v2`. */
    readonly path: string
    readonly handle: HttpHandler
    /** Receives the URL of the API: `http://host:port` and {@link path}. */
    readonly announce: (url: string) => void
  }
  /** Unit of its prices; default `EUR`. */
  readonly priceUnit?: string
  /** In the order of their creation. */
  instances(): readonly SimulatedInstance[]
}

/** The speed of a simulated cloud. */
export interface SimulationPace {
  /** Milliseconds until an instance has booted; default: the simulator's own. */
  readonly bootDelayMs?: number
  /** Whether everything is faster than in the real cloud, for demonstrations. */
  readonly isHurried?: boolean
  /** Whether the cloud starts with the node groups of {@link ProviderSimulator.nodeGroups}. */
  readonly hasNodeGroups?: boolean
}

/** Addresses of a running simulation. */
export interface SimulationPlace {
  /** URL of the cluster's API server. */
  readonly apiUrl: string
  /** Absolute path of the cluster's kubeconfig. */
  readonly kubeconfig: string
  /** URL of the cloud's own API; absent if it has none. */
  readonly cloudUrl?: string
}

/** What `tenon up --demo` shows in this cloud. */
export interface GuidedTour {
  /** What a new cluster is called, such as `managed cluster`. */
  readonly cluster: string
  /** YAML of the node class, named `standard`. */
  readonly nodeClass: string
  /** YAML of its NodePool, named `standard`, with the smallest general types. */
  readonly nodePool: string
  /** Why the node class becomes ready. */
  readonly whyReady: string
  /** The cheapest type of the NodePool, on which the small workload ends up. */
  readonly smallType: string
  /** How many nodes of that type hold the system pods and three pods of 1 CPU and 1 GiB; at least two. */
  readonly smallInstances: number
  /** Price of an instance type per hour, in the cloud's {@link SimulatedProvider.priceUnit}. */
  readonly priceOf: (instanceType: string) => PricePerHour
  /**
   * A second NodePool named `gpu`, with the taint `nvidia.com/gpu`, whose empty nodes are removed at once; absent in a
   * cloud without GPUs.
   */
  readonly gpu?: { readonly manifests: string; readonly families: string }
  /**
   * A second NodePool named `team`, with label and taint `team=platform`, whose empty nodes are removed at once; the
   * step of a cloud without GPUs.
   */
  readonly team?: { readonly manifests: string }
  /** Further reading, as a path in the repository. */
  readonly readOn: string
}

/** A simulator and its demonstration. */
export interface ProviderSimulator {
  /** Creates the cloud, with everything that {@link demonstration} and the documented examples refer to. */
  readonly cloud: (pace: SimulationPace) => CloudSimulator<SimulatedProvider>
  /** Variables with which the module's `open` uses this cloud instead of the real one. */
  readonly settings: (place: SimulationPlace) => Readonly<Record<string, string>>
  /** YAML of a node class, a NodePool and a small workload. */
  readonly demonstration: string
  readonly tour?: GuidedTour
  /** For `tenon up --mode cluster-autoscaler`; absent if the cloud simulates no node groups. */
  readonly nodeGroups?: {
    /** Values of `--nodes`. */
    readonly specs: readonly string[]
    /** YAML of a small workload for which the groups grow. */
    readonly demonstration: string
  }
}
