/** Graphics processors of a node (cluster-autoscaler.md 6.2). */
import { type Node, ownValue, parseResource } from '@tenon/api'
import { gpuResources } from '../../pods/classes.ts'

/** The resource by which a node offers its graphics processors; undefined when it has none. */
export function gpuResourceOf(node: Node): string | undefined {
  return gpuResources.find((resource) => {
    const amount = ownValue(node.status?.allocatable, resource)
    return amount !== undefined && parseResource(resource, amount) > 0
  })
}
