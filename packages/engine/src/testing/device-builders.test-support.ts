/** Devices, claims and pods that use them, for tests. */
import type {
  Device,
  DeviceClaim,
  DeviceClass,
  DeviceRequest,
  DeviceSubRequest,
  DeviceTaintRule,
  InstanceType,
  Pod,
  ResourceClaim,
  ResourceSlice,
} from '@tenon/api'
import type { AllocatedDevice, DeviceAllocation, DevicesInput } from '../input/devices.ts'
import type { SchedulingInput } from '../input/input.ts'
import { anInput, aPod, aType } from './builders.test-support.ts'

export const driver = 'gpu.example.com'

export function aDevice(
  name: string,
  attributes: Device['attributes'] = {},
  more: Partial<Device> = {},
): Device {
  return { name, attributes, ...more }
}

export function gpus(count: number, attributes: Device['attributes'] = {}): Device[] {
  return Array.from({ length: count }, (_, index) => aDevice(`gpu-${index}`, attributes))
}

/** A type whose nodes have these devices, in one pool. */
export function aDeviceType(
  name: string,
  cpu: number,
  devices: readonly Device[],
  zones = ['zone-1'],
): InstanceType {
  return { ...aType(name, cpu, cpu * 4, zones), resourceSliceTemplates: [{ driver, pool: 'node', devices }] }
}

export type SliceSpec = ResourceSlice['spec']

let serial = 0

/** A whole pool of one slice, on the node unless `at` says otherwise. */
export function aSlice(
  pool: string,
  devices: readonly Device[],
  at: Partial<SliceSpec>,
  generation = 0,
  resourceSliceCount = 1,
): ResourceSlice {
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: { name: `slice-${String(serial++).padStart(4, '0')}` },
    spec: { driver, pool: { name: pool, generation, resourceSliceCount }, devices, ...at },
  }
}

export const inZone = (zone: string): Partial<SliceSpec> => ({
  nodeSelector: {
    nodeSelectorTerms: [
      { matchExpressions: [{ key: 'topology.kubernetes.io/zone', operator: 'In', values: [zone] }] },
    ],
  },
})

export const gpuClass: DeviceClass = {
  apiVersion: 'resource.k8s.io/v1',
  kind: 'DeviceClass',
  metadata: { name: 'gpu' },
  spec: { selectors: [{ cel: { expression: `device.driver == '${driver}'` } }] },
}

export function exactly(name: string, more: Partial<DeviceSubRequest> = {}): DeviceRequest {
  return { name, exactly: { deviceClassName: 'gpu', ...more } }
}

export const cel = (expression: string): Pick<DeviceSubRequest, 'selectors'> => ({
  selectors: [{ cel: { expression } }],
})

export function aClaim(
  devices: DeviceClaim = { requests: [exactly('gpu')] },
  status?: ResourceClaim['status'],
): Pick<ResourceClaim, 'spec' | 'status'> {
  return { spec: { devices }, ...(status && { status }) }
}

/** Pods each with its claims, by name. */
export interface ClaimedPods {
  readonly pods: readonly (readonly [Pod, ...string[]])[]
  readonly claims: Readonly<Record<string, Pick<ResourceClaim, 'spec' | 'status'>>>
  readonly slices?: readonly ResourceSlice[]
  readonly allocations?: readonly DeviceAllocation[]
  readonly leaving?: readonly string[]
  readonly classes?: readonly DeviceClass[]
  readonly taintRules?: readonly DeviceTaintRule[]
  /** UIDs. */
  readonly withExtendedClaim?: readonly string[]
}

export function devicesInput({
  pods,
  claims,
  slices = [],
  allocations = [],
  leaving = [],
  classes = [gpuClass],
  taintRules = [],
  withExtendedClaim = [],
}: ClaimedPods): DevicesInput {
  const byName = Object.entries(claims).map(([name, claim]): [string, typeof claim] => [
    `default/${name}`,
    claim,
  ])
  return {
    slices,
    classes,
    taintRules,
    claims: new Map(byName),
    claimsOf: new Map(
      pods.map(([pod, ...names]) => [pod.metadata.uid ?? '', names.map((name) => `default/${name}`)]),
    ),
    allocations,
    withExtendedClaim: new Set(withExtendedClaim),
    leaving: new Set(leaving),
  }
}

export function aDeviceInput(
  claimed: ClaimedPods,
  overrides: Partial<SchedulingInput> = {},
): SchedulingInput {
  return anInput({ pods: claimed.pods.map(([pod]) => pod), devices: devicesInput(claimed), ...overrides })
}

/** A pod with claims, small enough for any type. */
export function aClaimingPod(): Pod {
  return aPod({ cpu: '100m' }, { resourceClaims: [{ name: 'devices', resourceClaimName: 'any' }] })
}

export function anAllocation(
  claim: string,
  pods: readonly string[] | undefined,
  ...devices: readonly (Partial<AllocatedDevice> & { readonly device: string; readonly pool: string })[]
): DeviceAllocation {
  return {
    claim: `default/${claim}`,
    pods,
    devices: devices.map((device) => ({ driver, consumedCapacity: undefined, ...device })),
  }
}

/** A rule that lets nobody have the devices it selects. */
export function aTaintRule(
  deviceSelector: DeviceTaintRule['spec']['deviceSelector'],
  taint: Partial<DeviceTaintRule['spec']['taint']> = {},
): DeviceTaintRule {
  return {
    apiVersion: 'resource.k8s.io/v1beta2',
    kind: 'DeviceTaintRule',
    metadata: { name: 'broken' },
    spec: {
      ...(deviceSelector && { deviceSelector }),
      taint: { key: 'broken', effect: 'NoSchedule', ...taint },
    },
  }
}
