/** Bodies of Exoscale API v2, reduced to the fields in use. Unknown fields and values are tolerated. */

export interface Reference {
  readonly id: string
}

export interface Zone {
  readonly name: string
  readonly 'api-endpoint'?: string
}

export interface ExoscaleInstanceType {
  readonly id: string
  readonly family?: string
  readonly size?: string
  readonly cpus?: number
  /** Bytes. */
  readonly memory?: number
  readonly gpus?: number
  readonly authorized?: boolean
  readonly zones?: readonly string[]
}

export interface Template {
  readonly id: string
  readonly name?: string
}

/** A security group or private network, as in lists. */
export interface NamedResource {
  readonly id: string
  readonly name?: string
}

export interface AntiAffinityGroup extends NamedResource {
  readonly instances?: readonly Reference[]
}

/** `starting`, `running`, `stopping`, …, `destroyed`; there may be new values. */
type InstanceState = string

export interface ExoscaleInstance {
  readonly id: string
  readonly name?: string
  readonly state?: InstanceState
  readonly labels?: Readonly<Record<string, string>>
  readonly 'instance-type'?: Partial<ExoscaleInstanceType>
  readonly template?: Partial<Template>
  readonly 'security-groups'?: readonly Reference[]
  readonly 'private-networks'?: readonly Reference[]
  /** Only from `getInstance`. */
  readonly 'anti-affinity-groups'?: readonly Reference[]
  /** GiB; only from `getInstance`. */
  readonly 'disk-size'?: number
  readonly 'public-ip'?: string
  readonly 'created-at'?: string
  /** What manages it, if anything. */
  readonly manager?: Manager
}

/** The manager of an instance or instance pool. */
interface Manager {
  readonly id?: string
  /** `instance-pool` for an instance, `sks-nodepool` for an instance pool. */
  readonly type?: string
}

/** The settings of a pool's members. */
interface PoolShape {
  readonly 'instance-type'?: Partial<Reference>
  /** GiB. */
  readonly 'disk-size'?: number
  readonly 'security-groups'?: readonly Reference[]
  readonly 'anti-affinity-groups'?: readonly Reference[]
  readonly 'private-networks'?: readonly Reference[]
}

export interface InstancePool extends PoolShape {
  readonly id: string
  readonly name?: string
  /** `running`, `scaling-up`, `scaling-down`, …; there may be new values. */
  readonly state: string
  /** The requested size; absent if its nodepool is empty. */
  readonly size?: number
  /** Absent if there are none. */
  readonly instances?: readonly Reference[]
  readonly manager?: Manager
}

export interface SksNodepool extends PoolShape {
  readonly id: string
  readonly name?: string
  readonly size?: number
  readonly 'instance-pool'?: Reference
  readonly labels?: Readonly<Record<string, string>>
  readonly taints?: Readonly<Record<string, { readonly value?: string; readonly effect?: string }>>
}

export interface SksCluster {
  readonly id: string
  readonly name?: string
  readonly nodepools?: readonly SksNodepool[]
}

export interface ScaleRequest {
  readonly size: number
}

export interface EvictRequest {
  /** Ids. */
  readonly instances: readonly string[]
}

export interface CreateInstanceRequest {
  readonly name: string
  readonly 'instance-type': Reference
  readonly template: Reference
  /** GiB. */
  readonly 'disk-size': number
  readonly 'user-data'?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly 'security-groups'?: readonly Reference[]
  readonly 'anti-affinity-groups'?: readonly Reference[]
}

export interface UpdateInstanceRequest {
  /** Replaces the whole map. */
  readonly labels?: Readonly<Record<string, string>>
}

type OperationState = 'pending' | 'success' | 'failure' | 'timeout'

export interface Operation {
  readonly id: string
  readonly state: OperationState
  readonly reason?: string
  readonly message?: string
  readonly reference?: { readonly id?: string; readonly link?: string; readonly command?: string }
}

export interface Quota {
  readonly resource?: string
  readonly usage?: number
  /** -1: unlimited. */
  readonly limit?: number
}
