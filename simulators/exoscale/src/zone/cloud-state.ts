import type { Logger, Random } from '@tenon/runtime'
import type { InstanceType } from './catalogue.ts'
import type { AddressPool } from './address-pool.ts'
import type { Template } from '../instances/instance.ts'
import type { KeptInstances } from '../instances/kept-instances.ts'
import type { InstanceTable } from '../instances/instance-table.ts'
import type { ExoscaleSettings } from '../settings.ts'
import type { StoppableClock } from '../stoppable-clock.ts'

export interface SecurityGroup {
  readonly id: string
  readonly name: string
  readonly description: string
}

export interface AntiAffinityGroup {
  readonly id: string
  readonly name: string
  readonly description: string
}

export interface PrivateNetwork {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly vni: number
  /** A network with a range assigns an address of it to every attached instance. */
  readonly range: { readonly startIp: string; readonly endIp: string; readonly netmask: string } | undefined
}

export interface InstancePool {
  readonly id: string
  readonly name: string
  state: 'creating' | 'running' | 'scaling-up' | 'scaling-down' | 'updating' | 'suspended' | 'destroying'
  size: number
  readonly type: InstanceType
  readonly template: Template
  readonly diskSizeGib: number
  readonly instancePrefix: string
  readonly minAvailable: number
  readonly userData: string | undefined
  /** Whether members without user data get user data with which they join the cluster. */
  readonly joins: boolean
  readonly securityGroupIds: readonly string[]
  readonly antiAffinityGroupIds: readonly string[]
  readonly nodepoolId: string | undefined
}

/** A public key that instances can be created with. */
export interface SshKey {
  readonly name: string
  readonly fingerprint: string
}

export interface SksNodepool {
  readonly id: string
  readonly name: string
  readonly description: string
  readonly instancePoolId: string
  readonly labels: Readonly<Record<string, string>>
  readonly taints: Readonly<Record<string, { readonly value: string; readonly effect: string }>>
  readonly createdAtMs: number
}

export interface SksCluster {
  readonly id: string
  readonly name: string
  readonly version: string
  /** URL of the API server; undefined: the one in the cluster-info. */
  readonly endpoint: string | undefined
  readonly defaultSecurityGroupId: string
  readonly createdAtMs: number
  readonly nodepools: SksNodepool[]
}

/** Everything in the zone. Lists are in creation order. */
export interface CloudState {
  readonly zone: string
  /** Base URL of this API, including `/v2`. */
  baseUrl: string
  readonly instances: InstanceTable
  readonly publicAddresses: AddressPool
  readonly templates: Map<string, Template>
  /** Ids of the templates for new nodes by `version/variant`. */
  readonly activeTemplates: Map<string, string>
  readonly securityGroups: Map<string, SecurityGroup>
  readonly antiAffinityGroups: Map<string, AntiAffinityGroup>
  readonly privateNetworks: Map<string, PrivateNetwork>
  readonly instancePools: Map<string, InstancePool>
  /** By name. */
  readonly sshKeys: Map<string, SshKey>
  readonly cluster: SksCluster
}

/** What every part of the cloud needs. */
export interface CloudContext {
  readonly state: CloudState
  readonly settings: ExoscaleSettings
  readonly clock: StoppableClock
  readonly random: Random
  readonly logger: Logger
  /** Absent: instances end with the process. */
  readonly kept?: KeptInstances
}
