/** Dynamic resource allocation: the kinds of `resource.k8s.io/v1`, and the devices of instance types. */
import type { Condition, KubeObject, NodeSelector, Taint, Toleration } from './objects.ts'

/** A value of an attribute: exactly one field is set. The plural ones are lists. */
export interface DeviceAttribute {
  readonly int?: number
  readonly bool?: boolean
  readonly string?: string
  readonly version?: string
  readonly ints?: readonly number[]
  readonly bools?: readonly boolean[]
  readonly strings?: readonly string[]
  readonly versions?: readonly string[]
}

/** Which amounts a request may consume; at most one of `validValues` and `validRange` is set. */
export interface CapacityRequestPolicy {
  readonly default?: string
  /** In ascending order. */
  readonly validValues?: readonly string[]
  readonly validRange?: { readonly min: string; readonly max?: string; readonly step?: string }
}

export interface DeviceCapacity {
  readonly value: string
  readonly requestPolicy?: CapacityRequestPolicy
}

/** How much a device in use takes from the counters of a set. */
export interface DeviceCounterConsumption {
  readonly counterSet: string
  readonly counters: Readonly<Record<string, { readonly value: string }>>
}

/** Counters that the devices of a pool share. */
export interface CounterSet {
  readonly name: string
  readonly counters: Readonly<Record<string, { readonly value: string }>>
}

/** `None` has no effect; it only informs. */
export interface DeviceTaint extends Omit<Taint, 'effect'> {
  readonly effect: 'None' | 'NoSchedule' | 'NoExecute'
}

export interface DeviceToleration extends Omit<Toleration, 'effect'> {
  readonly effect?: DeviceTaint['effect']
}

/** A device of a ResourceSlice or an instance type. */
export interface Device {
  readonly name: string
  readonly attributes?: Readonly<Record<string, DeviceAttribute>>
  readonly capacity?: Readonly<Record<string, DeviceCapacity>>
  readonly allowMultipleAllocations?: boolean
  readonly consumesCounters?: readonly DeviceCounterConsumption[]
  readonly taints?: readonly DeviceTaint[]
  /** Only in slices with `perDeviceNodeSelection`: where the device is available. */
  readonly nodeName?: string
  readonly nodeSelector?: NodeSelector
  readonly allNodes?: boolean
}

/** Devices published by a driver. A pool may span several slices. */
export interface ResourceSlice extends KubeObject {
  readonly spec: {
    readonly driver: string
    readonly pool: {
      readonly name: string
      /** Slices of older generations are ignored. */
      readonly generation: number
      readonly resourceSliceCount: number
    }
    /** Exactly one of these selects the nodes on which the devices are available. */
    readonly nodeName?: string
    readonly nodeSelector?: NodeSelector
    readonly allNodes?: boolean
    readonly perDeviceNodeSelection?: boolean
    readonly devices?: readonly Device[]
    readonly sharedCounters?: readonly CounterSet[]
  }
}

export interface DeviceSelector {
  readonly cel?: { readonly expression: string }
}

/** One way to satisfy a request: a number of devices of a class. */
export interface DeviceSubRequest {
  readonly name?: string
  readonly deviceClassName: string
  readonly selectors?: readonly DeviceSelector[]
  readonly allocationMode?: 'ExactCount' | 'All'
  /** For `ExactCount`; default 1. */
  readonly count?: number
  readonly adminAccess?: boolean
  readonly tolerations?: readonly DeviceToleration[]
  readonly capacity?: { readonly requests?: Readonly<Record<string, string>> }
}

export interface DeviceRequest {
  readonly name: string
  readonly exactly?: DeviceSubRequest
  /** Alternatives in order; the first that can be satisfied is used. */
  readonly firstAvailable?: readonly DeviceSubRequest[]
}

export interface DeviceConstraint {
  /** Names of requests, or `request/subrequest`; default: all requests. */
  readonly requests?: readonly string[]
  readonly matchAttribute?: string
  readonly distinctAttribute?: string
}

export interface DeviceClaim {
  readonly requests?: readonly DeviceRequest[]
  readonly constraints?: readonly DeviceConstraint[]
}

export interface DeviceAllocationResult {
  /** `request`, or `request/subrequest`. */
  readonly request?: string
  readonly driver: string
  readonly pool: string
  readonly device: string
  readonly adminAccess?: boolean
  readonly consumedCapacity?: Readonly<Record<string, string>>
  readonly shareID?: string
  readonly tolerations?: readonly DeviceToleration[]
}

/** Requested devices, and their allocation. */
export interface ResourceClaim extends KubeObject {
  readonly spec?: { readonly devices?: DeviceClaim }
  readonly status?: {
    readonly allocation?: {
      readonly devices?: { readonly results?: readonly DeviceAllocationResult[] }
      /** Nodes on which the devices are available; default: all. */
      readonly nodeSelector?: NodeSelector
    }
    readonly reservedFor?: readonly {
      readonly apiGroup?: string
      readonly resource: string
      readonly name: string
      readonly uid: string
    }[]
  }
}

export interface ResourceClaimTemplate extends KubeObject {
  readonly spec: {
    readonly metadata?: Pick<KubeObject['metadata'], 'labels' | 'annotations'>
    readonly spec: NonNullable<ResourceClaim['spec']>
  }
}

export interface DeviceClass extends KubeObject {
  readonly spec: {
    readonly selectors?: readonly DeviceSelector[]
    /** The extended resource that devices of the class serve. */
    readonly extendedResourceName?: string
  }
}

/** Taints devices as if their driver had done it (devices.md 3.21). */
export interface DeviceTaintRule extends KubeObject {
  readonly spec: {
    /** All set fields must match. An empty selector matches every device, a missing one none. */
    readonly deviceSelector?: {
      readonly driver?: string
      readonly pool?: string
      readonly device?: string
    }
    readonly taint: DeviceTaint
  }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** The devices that every node of an instance type has once its driver runs: one pool of one driver. */
export interface ResourceSliceTemplate {
  readonly driver: string
  readonly pool: string
  readonly devices: readonly Device[]
  readonly sharedCounters?: readonly CounterSet[]
}

/** References a device in the templates of an instance type. */
export interface TemplateDeviceRef {
  readonly driver: string
  readonly pool: string
  readonly device: string
}

/** Devices that share the value of an attribute which is unknown until the node runs. */
export interface AttributeBinding {
  readonly attribute: string
  readonly devices: readonly TemplateDeviceRef[]
}
