/** Graphics processors of a node (cluster-autoscaler.md 6.2). */
import { type Node, ownValue, parseResource } from '@tenon/api'

/** The first one that a node has counts. */
const gpuResources = [
  'nvidia.com/gpu',
  'habana.ai/gaudi',
  'gpu.intel.com/xe',
  'amd.com/gpu',
  'microsoft.com/directx',
] as const

/** The resource by which a node offers its graphics processors; undefined when it has none. */
export function gpuResourceOf(node: Node): string | undefined {
  return gpuResources.find((resource) => {
    const amount = ownValue(node.status?.allocatable, resource)
    return amount !== undefined && parseResource(resource, amount) > 0
  })
}
