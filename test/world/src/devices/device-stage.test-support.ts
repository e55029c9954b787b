/** Words for stories about devices: a class, claims, slices, and types that have some. */
import { type Device, type DeviceSubRequest, type InstanceType, kinds, type ResourceClaim } from '@tenon/api'
import { aType } from '../testing/pools.test-support.ts'
import type { Stage } from '../testing/stage.test-support.ts'

export const driver = 'gpu.example.com'

/** A type whose nodes will have so many GPUs. */
export function gpuType(name: string, cpu: number, gpus: number): InstanceType {
  const devices = Array.from({ length: gpus }, (_, index): Device => ({ name: `gpu-${index}` }))
  return { ...aType(name, cpu), resourceSliceTemplates: [{ driver, pool: 'node', devices }] }
}

/** The class `gpu` of all devices of the driver, which may serve an extended resource. */
export function createClass(stage: Stage, extendedResourceName?: string): void {
  stage.world.create(kinds.deviceClass, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'DeviceClass',
    metadata: { name: 'gpu' },
    spec: {
      selectors: [{ cel: { expression: `device.driver == '${driver}'` } }],
      ...(extendedResourceName !== undefined && { extendedResourceName }),
    },
  })
}

/** A claim on devices of the class `gpu`. */
export function createClaim(stage: Stage, name: string, request: Partial<DeviceSubRequest> = {}): void {
  stage.world.create(kinds.resourceClaim, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceClaim',
    metadata: { name, namespace: 'default' },
    spec: { devices: { requests: [{ name: 'gpu', exactly: { deviceClassName: 'gpu', ...request } }] } },
  })
}

export const using = (resourceClaimName: string) => ({
  resourceClaims: [{ name: 'gpu', resourceClaimName }],
})

/** What a node's driver has published: one pool named like the node, which the Node owns. */
export function publish(stage: Stage, node: string, devices: readonly Device[]): void {
  const uid = stage.nodeNow(node)?.metadata.uid ?? ''
  stage.world.create(kinds.resourceSlice, {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: { name: node, ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name: node, uid }] },
    spec: {
      driver,
      pool: { name: node, generation: 1, resourceSliceCount: 1 },
      nodeName: node,
      devices,
    },
  })
}

/** Writes what a claim has and for whom it is reserved, as the scheduler does. */
export function allocate(
  stage: Stage,
  claim: string,
  device: readonly [pool: string, name: string] | undefined,
  reservedFor: NonNullable<ResourceClaim['status']>['reservedFor'] = [],
  consumedCapacity?: Readonly<Record<string, string>>,
): void {
  const { local } = stage.world.cluster.server
  const object = local.get(kinds.resourceClaim, 'default', claim)
  if (object === undefined) throw new Error(`there is no claim ${claim}`)
  const [pool = '', name = ''] = device ?? []
  const result = { request: 'gpu', driver, pool, device: name, ...(consumedCapacity && { consumedCapacity }) }
  const allocation = { devices: { results: [result] } }
  local.updateStatus(kinds.resourceClaim, {
    ...object,
    status: { ...(device && { allocation }), ...(reservedFor.length > 0 && { reservedFor }) },
  })
}

/** The entry of `reservedFor` for a pod that exists. */
export function forPod(stage: Stage, name: string): { resource: string; name: string; uid: string } {
  return { resource: 'pods', name, uid: stage.podNow(name)?.metadata.uid ?? '' }
}
