/** ClusterAPINodeClass, the node class of Cluster API (cluster-api.md 2). */
import type { LabelSelector, NodeClass, ResourceType } from '@tenon/api'
import { providerDomain } from './names.ts'

/** Which MachineDeployments the nodes of a NodePool come from. */
export interface ClusterAPINodeClass extends NodeClass {
  readonly spec?: {
    /** Restricts the members; default: all MachineDeployments that are members. */
    readonly scalableResourceSelector?: LabelSelector
    /**
     * What to do with Machines whose template has changed, for MachineDeployments that do not roll out themselves:
     * `Replace` (default) makes their claims drift, `Ignore` leaves them to others.
     */
    readonly driftPolicy?: 'Replace' | 'Ignore'
  }
  readonly status?: NodeClass['status'] & {
    /** The matching MachineDeployments, ordered by namespace and name. */
    readonly machineDeployments?: readonly MatchedDeployment[]
  }
}

/** A MachineDeployment in the status of a node class. */
export interface MatchedDeployment {
  readonly namespace: string
  readonly name: string
  /** Absent if it is not used. */
  readonly instanceType?: string
  readonly zone?: string
  /** Price of a Machine per hour; absent if unknown. */
  readonly price?: string
  /** Why it is not used, or not at present. */
  readonly message?: string
}

/** The kind of {@link ClusterAPINodeClass}. */
export const clusterAPINodeClassKind: ResourceType<ClusterAPINodeClass> = {
  group: providerDomain,
  version: 'v1alpha1',
  kind: 'ClusterAPINodeClass',
  plural: 'clusterapinodeclasses',
  namespaced: false,
}

/** Conditions of a node class. */
export const conditionTypes = {
  /** `Ready` depends on it: the selector is valid. */
  validated: 'ValidationSucceeded',
  /** `Ready` depends on it: the hub has been read, and its MachineDeployments can be used. */
  read: 'MachineDeploymentsRead',
  /** Whether any is used. A node class without any is ready, as some may be created. */
  found: 'MachineDeploymentsFound',
} as const
