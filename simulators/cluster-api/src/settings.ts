/** Delays of the simulated Cluster API and its infrastructure (cluster-api.md 18). */
import { integerBetween, type Random } from '@tenon/runtime'

/** Range of a uniformly random delay in milliseconds, both ends included. */
export interface DelayRange {
  readonly minMs: number
  readonly maxMs: number
}

/** Every field may be changed at any time; it applies to later decisions. */
export interface ClusterApiSettings {
  /** From an event to the pass of the MachineDeployment controller; long if the controller lags. */
  deploymentDelay: DelayRange
  /** From an event to the pass of the MachineSet and Machine controllers. */
  controllerDelay: DelayRange
  /** From an event to the pass of the topology controller. */
  topologyDelay: DelayRange
  /** From the creation of a Machine to its bootstrap data; until then it is `Pending`. */
  bootstrapDelay: DelayRange
  /** From the creation of a Machine to its `spec.providerID`. */
  providerIdDelay: DelayRange
  /** From the provider ID to the registration of the Node; the kubelet's delay to Ready is extra. */
  nodeDelay: DelayRange
  /** From the end of a drain to the end of the machine. */
  deletionDelay: DelayRange
  /** Whether the core manager is down: machines boot, but nothing else happens. */
  isCoreAway: boolean
  /** Time between two attempts to drain a Node. */
  drainRetryMs: number
  /** Capacity of the infrastructure in Machines; undefined = no limit. */
  mostMachines: number | undefined
  /** The same by name of an infrastructure template. */
  mostMachinesOf: ReadonlyMap<string, number>
}

/** A fast infrastructure without limits. */
export function defaultSettings(): ClusterApiSettings {
  return {
    deploymentDelay: { minMs: 20, maxMs: 200 },
    controllerDelay: { minMs: 20, maxMs: 200 },
    topologyDelay: { minMs: 500, maxMs: 5_000 },
    bootstrapDelay: { minMs: 300, maxMs: 800 },
    providerIdDelay: { minMs: 5_000, maxMs: 15_000 },
    nodeDelay: { minMs: 20_000, maxMs: 40_000 },
    deletionDelay: { minMs: 5_000, maxMs: 15_000 },
    isCoreAway: false,
    drainRetryMs: 20_000,
    mostMachines: undefined,
    mostMachinesOf: new Map(),
  }
}

/** A random delay within the range. */
export function drawDelay(random: Random, { minMs, maxMs }: DelayRange): number {
  return integerBetween(random, minMs, Math.max(minMs, maxMs))
}
