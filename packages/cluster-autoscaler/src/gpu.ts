/** GPUs of nodes (cluster-autoscaler.md 6.2, 7.3). */
import { type Node, ownValue, parseResource } from '@tenon/api'

/** GPU resource names; the first that a node has is used. */
export const gpuResources = [
  'nvidia.com/gpu',
  'habana.ai/gaudi',
  'gpu.intel.com/xe',
  'amd.com/gpu',
  'microsoft.com/directx',
]

/** The GPU resource of a node; undefined if it has none. */
export function gpuResourceOf(node: Node): string | undefined {
  return gpuResources.find((resource) => {
    const amount = ownValue(node.status?.allocatable, resource)
    return amount !== undefined && parseResource(resource, amount) > 0
  })
}

/** Labels of counters about nodes: empty without a GPU. Types of GPUs are not distinguished. */
export interface GpuLabels extends Readonly<Record<string, string>> {
  readonly gpu_resource_name: string
  readonly gpu_name: string
}

/** @param node undefined if nothing is known about the counted nodes. */
export function gpuLabels(node: Node | undefined): GpuLabels {
  const gpu = node && gpuResourceOf(node)
  return { gpu_resource_name: gpu ?? '', gpu_name: gpu === undefined ? '' : 'generic' }
}
