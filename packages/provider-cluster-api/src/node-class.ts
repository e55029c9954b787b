/** ClusterAPINodeClass, the node class of Cluster API (cluster-api.md 2). */
import type { LabelSelector, NodeClass, ResourceType } from '@tenon/api'
import { providerDomain } from './names.ts'

/** Which MachineDeployments the nodes of a NodePool come from. */
export interface ClusterAPINodeClass extends NodeClass {
  readonly spec?: {
    /** Narrows the MachineDeployments that are members; all of them without it. */
    readonly scalableResourceSelector?: LabelSelector
    /**
     * What is done about Machines whose template has changed since, of MachineDeployments that do not roll
     * themselves: `Replace` (default) makes their claims drift, `Ignore` leaves them to whoever rolls them.
     */
    readonly driftPolicy?: 'Replace' | 'Ignore'
  }
  readonly status?: NodeClass['status'] & {
    /** What the class matches, in order of namespace and name. */
    readonly machineDeployments?: readonly MatchedDeployment[]
  }
}

/** A MachineDeployment in the status of a class. */
export interface MatchedDeployment {
  readonly namespace: string
  readonly name: string
  /** Absent when it is not used. */
  readonly instanceType?: string
  readonly zone?: string
  /** Of a Machine for one hour; absent when it is not known. */
  readonly price?: string
  /** Why it is not used, or not used now. */
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

/** Conditions of a class. */
export const conditionTypes = {
  /** Dependent of `Ready`: the selector can be understood. */
  validated: 'ValidationSucceeded',
  /** Dependent of `Ready`: the hub has been read, and what is there can be used. */
  read: 'MachineDeploymentsRead',
  /** Whether any is used; a class without is ready, as some may come. */
  found: 'MachineDeploymentsFound',
} as const
