/** Which NodeClaim a Machine is bound to, by the objects themselves (cluster-api.md 3). */
import { type NodeClaim, ownValue } from '@tenon/api'
import type { HubKey } from '../hub/keys.ts'
import { type ClusterApiNames, ownNames } from '../names.ts'
import type { Machine } from '../objects.ts'

/** What a Machine says about its NodeClaim. */
export type Binding =
  | { readonly kind: 'free' }
  /** Bound by Tenon. */
  | { readonly kind: 'bound'; readonly claimName: string; readonly claimUid: string }
  /** Bound by another provider, which only stores the Machine on the NodeClaim. */
  | { readonly kind: 'foreign' }

/** @param isTemplateMember whether all Machines of its MachineDeployment have the member label. */
export function bindingOf(machine: Machine, names: ClusterApiNames, isTemplateMember = false): Binding {
  const claimUid = ownValue(machine.metadata.annotations, ownNames.nodeClaimUid)
  const claimName = ownValue(machine.metadata.annotations, ownNames.nodeClaim)
  if (claimUid !== undefined && claimUid !== '' && claimName !== undefined)
    return { kind: 'bound', claimName, claimUid }
  const isMember = ownValue(machine.metadata.labels, names.member) !== undefined
  return isMember && !isTemplateMember ? { kind: 'foreign' } : { kind: 'free' }
}

/** Whether two states of a Machine have the same binding. */
export function isBoundAlike(one: Machine, other: Machine, names: ClusterApiNames): boolean {
  const [a, b] = [bindingOf(one, names), bindingOf(other, names)]
  return a.kind === 'bound' && b.kind === 'bound' ? a.claimUid === b.claimUid : a.kind === b.kind
}

/**
 * The merge patch that binds a Machine to a claim.
 * @param cluster identity of the claim's cluster.
 */
export function bindingPatch(
  { metadata: { name, uid = '' } }: NodeClaim,
  names: ClusterApiNames,
  cluster: string,
): object {
  return {
    metadata: {
      labels: { [names.member]: '' },
      annotations: {
        [ownNames.nodeClaim]: name,
        [ownNames.nodeClaimUid]: uid,
        [ownNames.workloadCluster]: cluster,
      },
    },
  }
}

/** Whether the claim of a Machine is in another cluster, as several may share a hub. */
export function isOfOther({ metadata }: Machine, cluster: string): boolean {
  const own = ownValue(metadata.annotations, ownNames.workloadCluster)
  return own !== undefined && own !== cluster
}

/** The parsed annotation of a NodeClaim. */
export type MachineRef =
  | { readonly kind: 'none' }
  | { readonly kind: 'ref'; readonly key: HubKey }
  | { readonly kind: 'invalid'; readonly text: string }

/** The Machine in a claim's annotation: `namespace/name`, both not blank. */
export function machineRefOf(claim: NodeClaim, names: ClusterApiNames): MachineRef {
  const text = ownValue(claim.metadata.annotations, names.machine)
  if (text === undefined) return { kind: 'none' }
  const parts = text.split('/').map((part) => part.trim())
  const [namespace = '', name = ''] = parts
  if (parts.length !== 2 || namespace === '' || name === '') return { kind: 'invalid', text }
  return { kind: 'ref', key: { namespace, name } }
}

/** Whether a Machine is neither being deleted nor marked for removal. */
export function isStaying({ metadata }: Machine, names: ClusterApiNames): boolean {
  return (
    metadata.deletionTimestamp === undefined &&
    ownValue(metadata.annotations, names.deleteMachine) === undefined
  )
}
