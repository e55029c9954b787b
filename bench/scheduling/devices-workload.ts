/** Pods with a claim for one device each, on nodes with eight devices. */
import { type Device, labels, type Pod, type ResourceClaim, type ResourceSlice } from '@tenon/api'
import type { NodeInput, SchedulingInput } from '@tenon/engine'
import type { Random } from '@tenon/runtime'
import { fakeCatalogue, pool } from './catalogue.ts'
import { aPod, pick } from './pods.ts'

const driver = 'gpu.example.com'
const devicesPerNode = 8
const models = ['a100', 'h100', 'l4', 'l40s']

interface Devices {
  readonly pods: number
  readonly nodes: number
}

/** Half of the pods claim any device of a class, the others one of a model; nothing is launched for them. */
export function devicesInput(
  random: Random,
  { pods: count, nodes: nodeCount }: Devices,
): Omit<SchedulingInput, 'policy'> {
  const nodes: NodeInput[] = []
  const slices: ResourceSlice[] = []
  for (let at = 0; at < nodeCount; at++) {
    const name = `node-${String(at).padStart(5, '0')}`
    nodes.push({
      name,
      labels: { [labels.hostname]: name, [labels.instanceType]: 'fake-it-63' },
      taints: [],
      initialized: true,
      available: { cpu: 64_000, memory: 128 * 1024 ** 3, pods: 110 },
      daemonRequests: {},
      usedHostPorts: [],
    })
    slices.push(sliceOf(name, models[at % models.length] as string))
  }
  const pods: Pod[] = []
  const claims = new Map<string, Pick<ResourceClaim, 'spec'>>()
  const claimsOf = new Map<string, readonly string[]>()
  for (let at = 0; at < count; at++) {
    const pod = aPod(at, { cpu: '1', memory: '1Gi' }, {})
    pods.push(pod)
    claims.set(`default/claim-${at}`, claimOf(at % 2 === 0 ? undefined : pick(random, models)))
    claimsOf.set(pod.metadata.uid ?? '', [`default/claim-${at}`])
  }
  return {
    pods,
    nodes,
    daemons: [],
    topology: { pods: [], nodes: new Map(), namespaces: new Map([['default', {}]]) },
    pools: [pool('default', fakeCatalogue())],
    devices: {
      slices,
      classes: [
        {
          apiVersion: 'resource.k8s.io/v1',
          kind: 'DeviceClass',
          metadata: { name: 'gpu' },
          spec: { selectors: [{ cel: { expression: `device.driver == '${driver}'` } }] },
        },
      ],
      claims,
      claimsOf,
      allocations: [],
      leaving: new Set(),
    },
  }
}

function sliceOf(nodeName: string, model: string): ResourceSlice {
  return {
    apiVersion: 'resource.k8s.io/v1',
    kind: 'ResourceSlice',
    metadata: { name: nodeName },
    spec: {
      driver,
      pool: { name: nodeName, generation: 1, resourceSliceCount: 1 },
      nodeName,
      devices: Array.from(
        { length: devicesPerNode },
        (_, index): Device => ({
          name: `gpu-${index}`,
          attributes: { model: { string: model }, index: { int: index } },
          capacity: { memory: { value: '80Gi' } },
        }),
      ),
    },
  }
}

/** A claim for one device of the class, of a model if one is given. */
function claimOf(model: string | undefined): Pick<ResourceClaim, 'spec'> {
  const expression = `device.attributes['${driver}'].model == '${model}'`
  return {
    spec: {
      devices: {
        requests: [
          {
            name: 'gpu',
            exactly: {
              deviceClassName: 'gpu',
              ...(model !== undefined && { selectors: [{ cel: { expression } }] }),
            },
          },
        ],
      },
    },
  }
}
