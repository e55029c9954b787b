/** Graphics processors of nodes (cluster-autoscaler.md 6.2, 7.3). */
import { type Node, ownValue, parseResource } from '@tenon/api'

/** Resources that GPUs are asked for as; the first that a node has is looked at. */
export const gpuResources = [
  'nvidia.com/gpu',
  'habana.ai/gaudi',
  'gpu.intel.com/xe',
  'amd.com/gpu',
  'microsoft.com/directx',
]

/** The resource by which a node offers its graphics processors; undefined when it has none. */
export function gpuResourceOf(node: Node): string | undefined {
  return gpuResources.find((resource) => {
    const amount = ownValue(node.status?.allocatable, resource)
    return amount !== undefined && parseResource(resource, amount) > 0
  })
}

/** Labels of counters about nodes: empty without a GPU, and no kind of GPU is told apart. */
export interface GpuLabels extends Readonly<Record<string, string>> {
  readonly gpu_resource_name: string
  readonly gpu_name: string
}

/** @param node undefined when nothing is known of the nodes that are counted. */
export function gpuLabels(node: Node | undefined): GpuLabels {
  const gpu = node && gpuResourceOf(node)
  return { gpu_resource_name: gpu ?? '', gpu_name: gpu === undefined ? '' : 'generic' }
}
