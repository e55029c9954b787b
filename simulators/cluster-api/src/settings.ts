/** Delays of the simulated Cluster API and its infrastructure (cluster-api.md 18). */
import { integerBetween, type Random } from '@tenon/runtime'

/** Bounds of a uniformly drawn duration in milliseconds, both ends included. */
export interface DelayRange {
  readonly minMs: number
  readonly maxMs: number
}

/** Every field may be changed at any time; it takes effect with the next decision. */
export interface ClusterApiSettings {
  /** From an event to the pass of the MachineDeployment controller over it: long when that lags. */
  deploymentDelay: DelayRange
  /** From an event to the pass of the controllers of MachineSets and Machines. */
  controllerDelay: DelayRange
  /** From the creation of a Machine to its bootstrap data: it is `Pending` until then. */
  bootstrapDelay: DelayRange
  /** From the creation of a Machine to its `spec.providerID`. */
  providerIdDelay: DelayRange
  /** From the provider ID to the registration of the Node; the kubelets' own delay to Ready comes on top. */
  nodeDelay: DelayRange
  /** From the end of a drain to the end of the machine. */
  deletionDelay: DelayRange
  /** Whether the core manager is away: machines boot, and nothing else goes on. */
  isCoreAway: boolean
  /** From one try to drain a Node to the next. */
  drainRetryMs: number
  /** Machines that the infrastructure has room for; without a bound when undefined. */
  mostMachines: number | undefined
  /** The same by the name of an infrastructure template. */
  mostMachinesOf: ReadonlyMap<string, number>
}

/** A quick infrastructure without a bound. */
export function defaultSettings(): ClusterApiSettings {
  return {
    deploymentDelay: { minMs: 20, maxMs: 200 },
    controllerDelay: { minMs: 20, maxMs: 200 },
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

/** Draws a duration. */
export function drawDelay(random: Random, { minMs, maxMs }: DelayRange): number {
  return integerBetween(random, minMs, Math.max(minMs, maxMs))
}
