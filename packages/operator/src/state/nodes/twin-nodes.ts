/** Which of several Nodes with one provider ID is the instance's (reports-2.md 6). */
import type { Node, NodeClaim } from '@tenon/api'

/**
 * The Node of an instance: the one that its claim was registered with as long as its kubelet reports, or nobody's does;
 * else the only one whose kubelet reports.
 * @param nodes that carry the provider ID of the claim.
 * @returns undefined when there is none, or nobody can tell which it is.
 */
export function ownNode(nodes: readonly Node[], claim: NodeClaim | undefined): Node | undefined {
  if (nodes.length < 2) return nodes[0]
  const registered = nodes.find(({ metadata }) => metadata.name === claim?.status?.nodeName)
  const [first, second] = nodes.filter(isReporting)
  if (first === undefined || (registered !== undefined && isReporting(registered))) return registered
  return second === undefined ? first : undefined
}

/** Whether a kubelet has reported lately: the node lifecycle controller says `Unknown` of those that have not. */
export function isReporting(node: Node): boolean {
  const ready = readyOf(node)
  return ready?.status === 'True' || ready?.status === 'False'
}

/** Since when nobody has reported for the Node; Unix milliseconds. */
export function silentSinceMs(node: Node): number {
  return Date.parse(readyOf(node)?.lastTransitionTime ?? node.metadata.creationTimestamp ?? '')
}

/** What is said of an instance with several Nodes. */
export function twinText(nodes: readonly Node[], own: Node | undefined): string {
  const names = nodes.map(({ metadata }) => metadata.name).toSorted()
  const whose = own === undefined ? '' : `; ${own.metadata.name} counts`
  return `Several Nodes carry provider ID ${nodes[0]?.spec?.providerID ?? ''}: ${names.join(', ')}${whose}`
}

function readyOf({ status }: Node) {
  return status?.conditions?.find(({ type }) => type === 'Ready')
}
