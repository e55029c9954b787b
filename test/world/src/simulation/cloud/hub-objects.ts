/** MachineDeployments and Machines of a world with the provider `cluster-api`. */
import { type KubeObject, ownValue } from '@tenon/api'
import { ownNames } from '@tenon/provider-cluster-api'
import type { FullDeployment, FullMachine } from '@tenon/simulator-cluster-api'
import type { World } from '../../world.ts'

/** Namespace of all of them. */
export const namespace = 'default'

/** Label of member MachineDeployments, and of bound Machines. */
export const memberLabel = 'node.cluster.x-k8s.io/karpenter-member'

/** On MachineDeployments whose Machines a user may be changing: since when, RFC 3339. */
export const meddledAnnotation = 'world.tenon.sh/meddled'

const deploymentName = 'cluster.x-k8s.io/deployment-name'

export const deploymentOf = ({ metadata }: KubeObject): string =>
  ownValue(metadata.labels, deploymentName) ?? ''

/** Whether the Machines of a MachineDeployment may become nodes of NodePools. */
export const isMember = ({ metadata }: FullDeployment): boolean =>
  ownValue(metadata.labels, memberLabel) === ''

/** The claim that a Machine is bound to; undefined if it is free. */
export const boundTo = ({ metadata }: KubeObject): string | undefined =>
  ownValue(metadata.annotations, ownNames.nodeClaimUid)

export const isLeaving = ({ metadata }: KubeObject): boolean => metadata.deletionTimestamp !== undefined

export function deploymentsIn({ clusterApi: { hub, kinds } }: World): readonly FullDeployment[] {
  return hub.list(kinds.deployment, { namespace })
}

/** Machines of member MachineDeployments. */
export function memberMachinesIn(world: World): readonly FullMachine[] {
  const { hub, kinds } = world.clusterApi
  const names = new Set(
    deploymentsIn(world)
      .filter(isMember)
      .map(({ metadata }) => metadata.name),
  )
  return hub.list(kinds.machine, { namespace }).filter((machine) => names.has(deploymentOf(machine)))
}

/** Machines of a MachineDeployment that are free and not being deleted. */
export function freeMachinesOf(world: World, { metadata: { name } }: FullDeployment): readonly FullMachine[] {
  return memberMachinesIn(world).filter(
    (machine) => deploymentOf(machine) === name && boundTo(machine) === undefined && !isLeaving(machine),
  )
}

/** Replicas that users requested and that no claim has taken. */
export function replicasOfUsers(world: World, { metadata, spec }: FullDeployment): number {
  const taken = memberMachinesIn(world).filter(
    (machine) => deploymentOf(machine) === metadata.name && boundTo(machine) !== undefined,
  )
  const asked = Number(ownValue(metadata.annotations, ownNames.asked) ?? 0)
  return Math.max(0, (spec?.replicas ?? 0) - Math.max(asked, taken.length))
}
