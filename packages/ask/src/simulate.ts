/** Simulates changes of a cluster. */
export {
  type ChangedSnapshot,
  changedSnapshot,
  type ObjectName,
  type SnapshotChange,
} from './simulate/changes.ts'
export { type Move, type MoveOptions, simulateMove } from './simulate/move.ts'
export {
  type AddedNodes,
  type DriftBudget,
  type LeavingNode,
  simulate,
  type SimulatedPrice,
  type Simulation,
} from './simulate/simulate.ts'
export {
  explainWorkload,
  workloadDocument,
  type WorkloadExplanation,
  workloadsOf,
  workloadText,
} from './simulate/workload.ts'
