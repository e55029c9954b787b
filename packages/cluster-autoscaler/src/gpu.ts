/** GPUs of nodes (cluster-autoscaler.md 6.2, 7.3). */
import { type Node, ownValue, parseResource } from '@tenon/api'
import { asNotReady } from './registry/node-state.ts'

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

/** GPUs of one type. */
export interface GpuAmount {
  /** Value of the cloud's GPU label. */
  readonly type: string
  readonly count: number
}

/** The GPUs of a node that has the cloud's label; undefined without it. */
export function gpusOf(node: Node, label: string | undefined): GpuAmount | undefined {
  const type = label === undefined ? undefined : ownValue(node.metadata.labels, label)
  if (type === undefined) return undefined
  const resource = gpuResourceOf(node)
  const amount = resource === undefined ? undefined : ownValue(node.status?.allocatable, resource)
  return { type, count: resource === undefined ? 0 : parseResource(resource, amount ?? 0) }
}

/** The node; not ready while it has the cloud's GPU label and its GPUs are not allocatable yet. */
export function asSeenWithGpus(node: Node, label: string | undefined): Node {
  return gpusOf(node, label)?.count === 0
    ? asNotReady(node, 'cluster-autoscaler.kubernetes.io/gpu-not-allocatable')
    : node
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
