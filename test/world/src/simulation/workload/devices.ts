/** Pods that claim GPUs as devices of a driver, which publishes late, and users who edit them. */
import { type DeviceClaim, karpenterKinds, kinds, type KubeObject } from '@tenon/api'
import { namespace, type PodShape, workload, workloadTypes } from './objects.ts'
import { pool } from './pools.ts'
import type { WorkloadContext } from './workload-context.ts'

const { deployment } = workloadTypes
const driver = 'gpu.nvidia.com'
const deviceClassName = 'gpu.nvidia.com'
/** Name of the pool, and label of the nodes on which pods with claims run. */
export const devicePool = 'devices'
/** Name of the template for two devices. */
export const pairTemplate = 'pair'

const ofArchitecture = (name: string) => ({
  selectors: [{ cel: { expression: `device.attributes['${driver}'].architecture == '${name}'` } }],
})

/** A whole GPU, two at once, one of a model, and one of several alternatives of which the first does not exist. */
const claims = {
  whole: [{ name: 'gpu', exactly: { deviceClassName } }],
  [pairTemplate]: [{ name: 'gpus', exactly: { deviceClassName, count: 2 } }],
  selected: [{ name: 'gpu', exactly: { deviceClassName, ...ofArchitecture('Ampere') } }],
  any: [
    {
      name: 'gpu',
      firstAvailable: [
        { name: 'best', deviceClassName, ...ofArchitecture('Blackwell') },
        { name: 'usual', deviceClassName },
      ],
    },
  ],
} as const satisfies Readonly<Record<string, DeviceClaim['requests']>>

type Claimed = keyof typeof claims
const names = Object.keys(claims) as [Claimed, ...Claimed[]]

/** A Deployment for each kind of claim, and one whose pods share a claim. Only if nodes publish devices. */
export function devices(context: WorkloadContext): void {
  const { dice, world } = context
  const { nodeClassKind, nodeClass, gpuTypes } = context.cloud.wares
  if (!world.cluster.cloud.settings.gpuDriver || gpuTypes.length === 0) return
  context.create(nodeClassKind, nodeClass('gpu'))
  context.create(
    karpenterKinds.nodePool,
    pool(context, devicePool, {
      nodeClassName: 'gpu',
      types: gpuTypes,
      spec: {
        disruption: {
          consolidationPolicy: dice.oneOf(['WhenEmpty', 'WhenEmptyOrUnderutilized']),
          consolidateAfter: dice.oneOf(['30s', '1m']),
          budgets: [{ nodes: '50%' }],
        },
      },
      template: {
        expireAfter: 'Never',
        terminationGracePeriod: '10m',
        taints: [{ key: 'example.com/devices', value: 'true', effect: 'NoSchedule' }],
      },
    }),
  )
  context.create(kinds.deviceClass, deviceObject('DeviceClass', deviceClassName, { selectors: [ofDriver] }))
  for (const name of names)
    context.create(
      kinds.resourceClaimTemplate,
      deviceObject(
        'ResourceClaimTemplate',
        name,
        { spec: { devices: { requests: claims[name] } } },
        namespace,
      ),
    )
  const shared = { devices: { requests: claims.whole } }
  context.create(kinds.resourceClaim, deviceObject('ResourceClaim', 'shared', shared, namespace))
  for (const name of names)
    context.create(
      deployment,
      workload(deployment, `claims-${name}`, shapeOf({ resourceClaimTemplateName: name }), {
        replicas: dice.between(0, 2),
      }),
    )
  const sharing = shapeOf({ resourceClaimName: 'shared' })
  context.create(deployment, workload(deployment, 'claims-shared', sharing, { replicas: dice.between(0, 2) }))
  context.every(3, 12, () => {
    const name = dice.oneOf<Claimed | 'shared'>([...names, 'shared'])
    const replicas = dice.between(0, 3)
    context.patch(deployment, `claims-${name}`, { spec: { replicas } }, namespace)
  })
}

const ofDriver = { cel: { expression: `device.driver == '${driver}'` } }

function deviceObject(kind: string, name: string, spec: object, inNamespace?: string): KubeObject {
  const metadata = { name, ...(inNamespace !== undefined && { namespace: inNamespace }) }
  const object = { apiVersion: 'resource.k8s.io/v1', kind, metadata, spec }
  return object
}

function shapeOf(source: { resourceClaimName: string } | { resourceClaimTemplateName: string }): PodShape {
  return {
    cpu: 500,
    memory: 1024,
    spec: {
      nodeSelector: { 'karpenter.sh/nodepool': devicePool },
      tolerations: [{ key: 'example.com/devices', operator: 'Exists' }],
      resourceClaims: [{ name: 'device', ...source }],
    },
  }
}
