/** Machines as members of node groups. */
import type { GroupInstance } from '@tenon/provider'
import { type HubKey, hubKeyOf } from '../hub/keys.ts'
import { templateHasMember } from '../machines/balance.ts'
import { bindingOf } from '../machines/binding.ts'
import type { ClusterApiNames } from '../names.ts'
import type { Machine } from '../objects.ts'
import type { Scalable } from './scalable.ts'

/** The last one is only used to remove the Machine of a Node: neither of them has a provider ID. */
const pseudoIds = ['failed-machine-', 'deleting-machine-', 'pending-machine-', 'running-machine-'] as const

/**
 * A Machine as an instance; undefined if it stands for no Node.
 * @param providerIdOf provider ID of the Node of that name, which may be empty; undefined if there is no such Node.
 */
export function instanceOf(
  machine: Machine,
  providerIdOf: (nodeName: string) => string | undefined,
): GroupInstance | undefined {
  const { metadata, spec, status } = machine
  const { namespace, name } = hubKeyOf(machine)
  const node = status?.nodeRef
  const named = node?.name === undefined ? {} : { nodeName: node.name }
  const pseudo = (prefix: (typeof pseudoIds)[number]) => ({
    providerId: `${prefix}${namespace}_${name}`,
    ...named,
  })
  const isDeleting = metadata.deletionTimestamp !== undefined
  const failure = failureOf(machine)
  if (failure !== undefined && status?.phase === 'Failed') {
    const member = pseudo('failed-machine-')
    if (isDeleting)
      return { ...member, state: 'deleting', error: { code: 'DeletingFailed', message: failure } }
    if (node === undefined)
      return { ...member, state: 'creating', error: { code: 'ProvisioningFailed', message: failure } }
    return member
  }
  if (isDeleting) return { ...pseudo('deleting-machine-'), state: 'deleting' }
  if (node === undefined) return { ...pseudo('pending-machine-'), state: 'creating' }
  const { providerID = '' } = spec ?? {}
  if (providerID !== '') return { providerId: providerID, ...named, state: 'running' }
  if (node.name === undefined || (node.kind !== undefined && node.kind !== 'Node')) return undefined
  const ofNode = providerIdOf(node.name)
  return ofNode === undefined ? undefined : { providerId: ofNode, ...named, state: 'running' }
}

/**
 * The NodeClaim of a Machine, as in messages; undefined without one. Such a Machine is never removed here.
 * @param owner its MachineDeployment, MachineSet or MachinePool.
 */
export function claimOf(machine: Machine, owner: Scalable, names: ClusterApiNames): string | undefined {
  const binding = bindingOf(machine, names, templateHasMember(owner, names))
  if (binding.kind === 'free') return undefined
  return binding.kind === 'bound' ? `NodeClaim ${binding.claimName}` : `a NodeClaim (label ${names.member})`
}

/** The ID by which a Machine can be removed whose Node has no provider ID. */
export function removableId(machine: Machine): string {
  const { namespace, name } = hubKeyOf(machine)
  const { providerID = '' } = machine.spec ?? {}
  return providerID === '' ? `running-machine-${namespace}_${name}` : providerID
}

/** Why a Machine failed, if it says so, in the fields of either version. */
function failureOf({ status }: Machine): string | undefined {
  const former = status?.deprecated?.v1beta1
  return status?.failureMessage ?? status?.failureReason ?? former?.failureMessage ?? former?.failureReason
}

/** The Machine that a pseudo ID names; undefined if the ID is none. */
export function machineOfPseudoId(id: string): HubKey | undefined {
  const prefix = pseudoIds.find((each) => id.startsWith(each))
  const [, namespace, name] = /^([^_]+)_(.+)$/.exec(prefix === undefined ? '' : id.slice(prefix.length)) ?? []
  return namespace === undefined || name === undefined ? undefined : { namespace, name }
}

export function isPendingId(id: string): boolean {
  return id.startsWith('pending-machine-')
}

/** The part of a provider ID that Nodes and Machines always agree on; all of it for a scale set of Azure. */
export function normalizedId(providerId: string): string {
  if (providerId.startsWith('azure://') && providerId.includes('virtualMachineScaleSets')) return providerId
  return providerId.slice(providerId.lastIndexOf('/') + 1)
}
