/** The simulated Cluster API. */
export { type ClusterApi, type ClusterApiOptions, startClusterApi } from './cluster-api.ts'
export { clusterApiCrds } from './crds.ts'
export type { Faults, MachineEffect, MachineFault } from './faults.ts'
export {
  type DeletionPolicy,
  finalizers,
  type FullDeployment,
  type FullMachine,
  type FullSet,
  type InfrastructureTemplate,
  type MachineShape,
  type SimulatedKinds,
  simulatedKinds,
} from './kinds.ts'
export { simulator } from './provider-simulator.ts'
export type { ClusterApiSettings, DelayRange } from './settings.ts'
export { type ClusterApiCluster, clusterApiSimulator, prepareHub, workloadCluster } from './simulator.ts'
