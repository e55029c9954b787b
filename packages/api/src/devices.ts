/** Dynamic resource allocation: `resource.k8s.io/v1` and what instance types say of their devices. */
import type { Condition, KubeObject, NodeSelector, Taint, Toleration } from './objects.ts'

/** A value of an attribute: exactly one of the fields is set. The plural ones hold lists. */
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

/** Which amounts a request may take of a capacity; at most one of `validValues` and `validRange` is set. */
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

/** What a device takes of the counters of a set while it is in use. */
export interface DeviceCounterConsumption {
  readonly counterSet: string
  readonly counters: Readonly<Record<string, { readonly value: string }>>
}

/** Counters that the devices of a pool draw on together. */
export interface CounterSet {
  readonly name: string
  readonly counters: Readonly<Record<string, { readonly value: string }>>
}

/** A taint of a device; `None` only informs. */
export interface DeviceTaint extends Omit<Taint, 'effect'> {
  readonly effect: 'None' | 'NoSchedule' | 'NoExecute'
}

export interface DeviceToleration extends Omit<Toleration, 'effect'> {
  readonly effect?: DeviceTaint['effect']
}

/** A device, as ResourceSlices and instance types describe it. */
export interface Device {
  readonly name: string
  readonly attributes?: Readonly<Record<string, DeviceAttribute>>
  readonly capacity?: Readonly<Record<string, DeviceCapacity>>
  readonly allowMultipleAllocations?: boolean
  readonly consumesCounters?: readonly DeviceCounterConsumption[]
  readonly taints?: readonly DeviceTaint[]
  /** Where the device can be reached, in slices with `perDeviceNodeSelection`. */
  readonly nodeName?: string
  readonly nodeSelector?: NodeSelector
  readonly allNodes?: boolean
}

/** Devices that a driver publishes; a pool of them may need several slices. */
export interface ResourceSlice extends KubeObject {
  readonly spec: {
    readonly driver: string
    readonly pool: {
      readonly name: string
      /** Slices of an older generation no longer count. */
      readonly generation: number
      /** How many slices the pool has at this generation. */
      readonly resourceSliceCount: number
    }
    /** Exactly one of these says which nodes reach the devices. */
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

/** One way to meet a request: so many devices of a class. */
export interface DeviceSubRequest {
  readonly name?: string
  readonly deviceClassName: string
  readonly selectors?: readonly DeviceSelector[]
  readonly allocationMode?: 'ExactCount' | 'All'
  /** With `ExactCount`; 1 unless set. */
  readonly count?: number
  readonly adminAccess?: boolean
  readonly tolerations?: readonly DeviceToleration[]
  readonly capacity?: { readonly requests?: Readonly<Record<string, string>> }
}

export interface DeviceRequest {
  readonly name: string
  readonly exactly?: DeviceSubRequest
  /** The first that can be met is. */
  readonly firstAvailable?: readonly DeviceSubRequest[]
}

export interface DeviceConstraint {
  /** Names of requests, or `request/subrequest`; all requests unless set. */
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

/** Devices that were asked for, and those that were given. */
export interface ResourceClaim extends KubeObject {
  readonly spec?: { readonly devices?: DeviceClaim }
  readonly status?: {
    readonly allocation?: {
      readonly devices?: { readonly results?: readonly DeviceAllocationResult[] }
      /** Nodes from which the devices can be reached; all unless set. */
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
  readonly spec: { readonly selectors?: readonly DeviceSelector[] }
}

/** Taints devices as if their driver had done so (devices.md 3.21). */
export interface DeviceTaintRule extends KubeObject {
  readonly spec: {
    /** All that is set has to match; an empty one matches all devices, an absent one none. */
    readonly deviceSelector?: {
      readonly driver?: string
      readonly pool?: string
      readonly device?: string
    }
    readonly taint: DeviceTaint
  }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

/** Devices that every node of an instance type has once its driver runs: one pool of one driver. */
export interface ResourceSliceTemplate {
  readonly driver: string
  readonly pool: string
  readonly devices: readonly Device[]
  readonly sharedCounters?: readonly CounterSet[]
}

/** Names a device of an instance type's templates. */
export interface TemplateDeviceRef {
  readonly driver: string
  readonly pool: string
  readonly device: string
}

/** Devices that will share the value of an attribute, which is not known before a node runs. */
export interface AttributeBinding {
  readonly attribute: string
  readonly devices: readonly TemplateDeviceRef[]
}
