/** From a Node to its Machine. */
import { type Node, ownValue } from '@tenon/api'
import { type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import type { ClusterApiNames } from '../names.ts'
import type { Machine } from '../objects.ts'
import type { Owned } from './discovery.ts'
import type { GroupHub } from './group-hub.ts'
import { claimOf } from './instances.ts'
import { type GroupRef, refOf } from './scalable.ts'

/** The resource of a Node. */
export type FoundResource =
  /** `machine` is absent for an instance of a MachinePool without Machines. */
  | { readonly kind: 'resource'; readonly ref: GroupRef; readonly machine?: Machine }
  /** `reason` is set if a user should know it. */
  | { readonly kind: 'none'; readonly reason?: string }
  | { readonly kind: 'ambiguous'; readonly reason: string }

/**
 * Looks by exact provider ID, by normalized ID, by the Node's annotations, and by the Machine's reference to the Node.
 * @param isOurs whether a Machine or MachinePool is of the workload's Cluster.
 */
export function resourceOfNode(hub: GroupHub, node: Node, isOurs: (object: Owned) => boolean): FoundResource {
  const { name } = node.metadata
  const { providerID = '' } = node.spec ?? {}
  const annotated = machineKeyOf(node, hub.names)
  const byAnnotation = annotated === undefined ? undefined : hub.machine(annotated)
  const looks: readonly (() => readonly Machine[])[] = [
    () => hub.withProviderId(providerID),
    () => (providerID === '' ? [] : hub.withNormalizedId(providerID)),
    () => (byAnnotation === undefined ? [] : [byAnnotation]),
    () => hub.ofNode(name),
  ]
  for (const look of looks) {
    const found = look().filter(isOurs)
    const [machine, second] = found
    if (machine === undefined) continue
    // Of several Machines with one ID, the annotations tell which it is.
    const named = found.find((each) => annotated && hubText(hubKeyOf(each)) === hubText(annotated))
    if (second !== undefined && named === undefined)
      return {
        kind: 'ambiguous',
        reason: `provider ID ${providerID} of Node ${name} is that of several Machines: ${found.map((each) => hubText(hubKeyOf(each))).join(', ')}`,
      }
    const own = named ?? machine
    const ref = hub.ownerOf(own)
    const owner = ref && hub.resource(ref)
    const claim = owner && claimOf(own, owner, hub.names)
    // It would be drained, and its removal refused.
    if (claim !== undefined)
      return { kind: 'none', reason: `Machine ${hubText(hubKeyOf(own))} belongs to ${claim}` }
    return ref === undefined ? { kind: 'none' } : { kind: 'resource', ref, machine: own }
  }
  const pools = providerID === '' ? [] : hub.poolsWithId(providerID).filter(isOurs)
  const [pool, other] = pools
  if (pool === undefined) return { kind: 'none' }
  if (other === undefined) return { kind: 'resource', ref: refOf('MachinePool', pool) }
  return {
    kind: 'ambiguous',
    reason: `provider ID ${providerID} of Node ${name} is that of several MachinePools: ${pools.map((each) => hubText(hubKeyOf(each))).join(', ')}`,
  }
}

/** The Machine in a Node's annotations: a bare name beside the Cluster's namespace, or `namespace/name`. */
export function machineKeyOf(
  { metadata: { annotations } }: Node,
  { machine, clusterNamespace }: ClusterApiNames,
): HubKey | undefined {
  const text = ownValue(annotations, machine) ?? ''
  const [first = '', second] = text.split('/')
  const namespace = second === undefined ? (ownValue(annotations, clusterNamespace) ?? '') : first
  const name = second ?? first
  return namespace === '' || name === '' ? undefined : { namespace, name }
}

/** The Cluster in a Node's annotations, as `namespace/name`. */
export function clusterOfNode(
  { metadata: { annotations } }: Node,
  { clusterName, clusterNamespace }: ClusterApiNames,
): string | undefined {
  const name = ownValue(annotations, clusterName) ?? ''
  const namespace = ownValue(annotations, clusterNamespace) ?? ''
  return namespace === '' || name === '' ? undefined : hubText({ namespace, name })
}
