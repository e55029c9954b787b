/** Ownership of Cluster API's MachineDeployments and Machines (cluster-api.md 9, 10, 18). */
import { type KubeObject, type NodeClaim, ownValue } from '@tenon/api'
import { ownNames } from '@tenon/provider-cluster-api'
import type { FullDeployment } from '@tenon/simulator-cluster-api'
import {
  boundTo,
  deploymentOf,
  deploymentsIn,
  freeMachinesOf,
  isLeaving,
  isMember,
  memberMachinesIn,
  meddledAnnotation,
  namespace,
  replicasOfUsers,
} from '../cloud/hub-objects.ts'
import { annotation, type Invariant, type Scene } from './scene.ts'

const minute = 60_000
/** The effects of users' changes are over after this time: rollouts wait for Machines. */
const meddlingMs = 60 * minute
/** The sweep looks at Machines that have been free for minutes; the rest is for its guard, retries and outages. */
const unclaimedBoundMs = 60 * minute
const deleteMachine = 'cluster.x-k8s.io/delete-machine'

const deploymentIn = ({ world }: Pick<Scene, 'world'>, name: string): FullDeployment | undefined =>
  deploymentsIn(world).find(({ metadata }) => metadata.name === name)

/** MachineDeployments that are not members, and their Machines, are never written to. */
export const foreignDeploymentsKept: Invariant = (scene) => ({
  apiWrite({ process, method, plural, name = '' }) {
    const { hub, kinds } = scene.world.clusterApi
    const machine = plural === kinds.machine.plural ? hub.get(kinds.machine, namespace, name) : undefined
    const owner = machine === undefined ? name : deploymentOf(machine)
    if (machine === undefined && plural !== kinds.deployment.plural) return
    const deployment = deploymentIn(scene, owner)
    if (deployment !== undefined && !isMember(deployment))
      scene.violate(
        'foreignDeploymentsKept',
        `${process.name} sends ${method} for ${plural} ${name} of MachineDeployment ${owner}, which is not a member`,
      )
  },
})

/** A Machine is bound to one claim for ever, and no two claims share a Machine. */
export const machinesBoundOnce: Invariant = ({ violate, world }) => ({
  cloudObject(now, before) {
    const [uid, former] = [now && boundTo(now), before && boundTo(before)]
    if (now === undefined || former === undefined || uid === former) return
    violate(
      'machinesBoundOnce',
      `Machine ${now.metadata.name} of claim ${former} is bound to ${uid ?? 'none'}`,
    )
  },
  claim(now, before) {
    const id = now?.status?.providerID
    if (now === undefined || id === undefined || id === before?.status?.providerID) return
    const other = world
      .claims()
      .find(({ metadata, status }) => metadata.uid !== now.metadata.uid && status?.providerID === id)
    if (other !== undefined)
      violate(
        'machinesBoundOnce',
        `NodeClaims ${now.metadata.name} and ${other.metadata.name} have the one Machine of ${id}`,
      )
  },
})

/** A Machine whose claim stays is kept, also by the replicas that controllers request. */
export const boundMachinesKept: Invariant = (scene) => {
  const { clock, violate, world } = scene
  const claimOf = (machine: KubeObject): NodeClaim | undefined => {
    const name = ownValue(machine.metadata.annotations, ownNames.nodeClaim) ?? ''
    const claim = scene.claimByName(name)
    return claim?.metadata.uid === boundTo(machine) ? claim : undefined
  }
  const isInUse = (machine: KubeObject): boolean => {
    const claim = claimOf(machine)
    return claim !== undefined && claim.metadata.deletionTimestamp === undefined
  }
  const isMeddled = (deployment: FullDeployment): boolean => {
    const at = annotation(deployment, meddledAnnotation)
    return at !== undefined && clock.now() - Date.parse(at) < meddlingMs
  }
  return {
    apiWrite({ process, method, plural, name = '', request }) {
      const { hub, kinds } = world.clusterApi
      if (plural !== kinds.machine.plural) return
      const machine = hub.get(kinds.machine, namespace, name)
      if (machine === undefined || isLeaving(machine) || !isInUse(machine)) return
      const { annotations = {} } =
        method === 'PATCH' ? (JSON.parse(String(request.body)) as KubeObject).metadata : {}
      if (method === 'DELETE' || Object.hasOwn(annotations, deleteMachine))
        violate(
          'boundMachinesKept',
          `${process.name} ends Machine ${name}, whose NodeClaim ${claimOf(machine)?.metadata.name} stays`,
        )
    },
    cloudObject(now, before) {
      if (now === undefined || before === undefined || !isLeaving(now) || isLeaving(before)) return
      const deployment = deploymentIn(scene, deploymentOf(now))
      if (deployment === undefined || isMeddled(deployment) || !isInUse(now)) return
      violate(
        'boundMachinesKept',
        `Machine ${now.metadata.name}, whose NodeClaim ${claimOf(now)?.metadata.name} stays, goes because MachineDeployment ${deployment.metadata.name} has ${deployment.spec?.replicas} replicas`,
      )
    },
  }
}

/**
 * A Machine that Tenon requested and that no claim has taken is released. One that a rollout made in place of a Machine
 * that Cluster API is still draining is the rollout's.
 */
export const noUnclaimedMachine: Invariant = ({ clock, violate, world }) => {
  const since = new Map<string, number>()
  return {
    minute() {
      for (const deployment of deploymentsIn(world).filter(isMember)) {
        const { name } = deployment.metadata
        const free = freeMachinesOf(world, deployment)
        const replaced = memberMachinesIn(world).filter(
          (machine) => deploymentOf(machine) === name && isLeaving(machine) && boundTo(machine) !== undefined,
        )
        if (free.length <= replicasOfUsers(world, deployment) + replaced.length) {
          since.delete(name)
          continue
        }
        const first = since.get(name) ?? clock.monotonic()
        since.set(name, first)
        if (clock.monotonic() - first > unclaimedBoundMs)
          violate(
            'noUnclaimedMachine',
            `${free.length} Machines of MachineDeployment ${name} have belonged to no NodeClaim for an hour`,
          )
      }
    },
  }
}
