/** Faults of the simulated Cluster API, and changes of MachineDeployments and Machines by users. */
import type { ClusterApiSettings, FullDeployment, MachineEffect } from '@tenon/simulator-cluster-api'
import { integerBetween, type Random, rfc3339 } from '@tenon/runtime'
import type { World } from '../../world.ts'
import {
  deploymentOf,
  deploymentsIn,
  freeMachinesOf,
  isLeaving,
  isMember,
  meddledAnnotation,
  memberMachinesIn,
  namespace,
  replicasOfUsers,
} from '../cloud/hub-objects.ts'
import type { FaultKind } from '../story.ts'
import type { FaultDependencies } from './api-faults.ts'
import { playedFaults } from './played-faults.ts'

const second = 1000
const minute = 60 * second
/** How long a fault waits for an object to affect. */
const waitingMs = 5 * minute

const usualDeploymentDelay = { minMs: 50, maxMs: 1_000 }

/** Cluster API in a world without faults: faster than in reality, so that stories have many launches. */
export const usualHub: Partial<ClusterApiSettings> = {
  deploymentDelay: usualDeploymentDelay,
  controllerDelay: { minMs: 50, maxMs: 500 },
}

const isLater = (random: Random): boolean => random.uint32() % 2 === 0

/** What happens to the next Machines, by kind of fault. */
const effects: readonly (readonly [kind: FaultKind, effect: (random: Random) => MachineEffect])[] = [
  [
    'failedOperation',
    (random) => ({
      kind: 'fails',
      afterMs: isLater(random) ? second : integerBetween(random, second, 2 * minute),
      reason: 'CreateError',
      message: 'not here',
    }),
  ],
  [
    'hangingOperation',
    (random) =>
      isLater(random)
        ? { kind: 'neverProvided' }
        : { kind: 'noRoom', forMs: integerBetween(random, 30 * second, 20 * minute) },
  ],
  [
    'slowSync',
    (random) => ({
      kind: 'slow',
      providerIdMs: integerBetween(random, 20 * second, 8 * minute),
      nodeMs: integerBetween(random, minute, 5 * minute),
    }),
  ],
  ['neverBoots', () => ({ kind: 'neverJoins' })],
  ['neverJoins', () => ({ kind: 'neverJoins' })],
  ['neverReady', () => ({ kind: 'neverReady' })],
  [
    'failedDeletion',
    (random) => ({ kind: 'slowDeletion', moreMs: integerBetween(random, minute, 20 * minute) }),
  ],
]

/** Starts and ends faults. Call the result to stop; users then revert their changes. */
export function playHubFaults(world: World, deps: FaultDependencies): () => void {
  const { clock, log, weather } = deps
  const { clusterApi } = world
  const { hub, kinds, settings } = clusterApi
  let isStopped = false
  const { timed, asUser } = playedFaults(deps)
  const oneOf = <T>(kind: FaultKind, all: readonly T[]): T | undefined =>
    all[weather.source(kind).uint32() % Math.max(1, all.length)]
  const oneDeployment = (kind: FaultKind): FullDeployment | undefined =>
    oneOf(kind, deploymentsIn(world).filter(isMember))
  const change = ({ metadata: { name } }: FullDeployment, patch: object): void => {
    const annotations = { [meddledAnnotation]: rfc3339(clock.now()) }
    hub.patch(kinds.deployment, namespace, name, { metadata: { annotations }, ...patch })
  }
  const pause = (name: string, value: string | null): void => {
    const annotations = { 'cluster.x-k8s.io/paused': value }
    hub.patch(kinds.deployment, namespace, name, { metadata: { annotations } })
  }
  const meddle = (): void => {
    if (weather.strikes('machineDeleted')) {
      const machine = oneOf(
        'machineDeleted',
        memberMachinesIn(world).filter((each) => !isLeaving(each)),
      )
      if (machine !== undefined)
        asUser(`machineDeleted ${machine.metadata.name}`, () => {
          const deployment = hub.get(kinds.deployment, namespace, deploymentOf(machine))
          if (deployment !== undefined) change(deployment, {})
          hub.delete(kinds.machine, namespace, machine.metadata.name)
        })
    }
    if (weather.strikes('replicasEdited')) {
      const deployment = oneDeployment('replicasEdited')
      const random = weather.source('replicasEdited')
      const more = isLater(random) ? 1 : -1
      if (deployment !== undefined)
        asUser(`replicasEdited ${deployment.metadata.name} ${more}`, () => {
          change(deployment, { spec: { replicas: Math.max(0, (deployment.spec?.replicas ?? 0) + more) } })
        })
    }
    if (weather.strikes('templateRolled')) {
      const deployment = oneDeployment('templateRolled')
      const failureDomain = `domain-${weather.source('templateRolled').uint32() % 3}`
      if (deployment !== undefined)
        asUser(`templateRolled ${deployment.metadata.name}`, () => {
          change(deployment, { spec: { template: { spec: { failureDomain } } } })
        })
    }
    if (weather.strikes('deploymentPaused')) {
      const name = oneDeployment('deploymentPaused')?.metadata.name
      if (name !== undefined)
        asUser(`deploymentPaused ${name}`, () => {
          pause(name, '')
          timed('deploymentPaused', 10 * minute, () => pause(name, null))
        })
    }
  }
  const step = (): void => {
    if (isStopped) return
    for (const [kind, effect] of effects) {
      if (!weather.strikes(kind)) continue
      log.record('fault', kind)
      const random = weather.source(kind)
      const fault = { times: integerBetween(random, 1, 3), effect: effect(random) }
      clock.after(waitingMs, clusterApi.faults.add(fault))
    }
    if (weather.strikes('drought')) {
      const made = clusterApi.instances().length
      settings.mostMachines = made + integerBetween(weather.source('drought'), 0, 2)
      timed('drought', 40 * minute, () => {
        settings.mostMachines = undefined
      })
    }
    if (weather.strikes('laggingController')) {
      settings.deploymentDelay = { minMs: 10 * second, maxMs: 2 * minute }
      timed('laggingController', 10 * minute, () => {
        settings.deploymentDelay = usualDeploymentDelay
      })
    }
    meddle()
    clock.after(minute, step)
  }
  clock.after(minute, step)
  return () => {
    isStopped = true
    clusterApi.faults.clear()
    settings.mostMachines = undefined
    settings.deploymentDelay = usualDeploymentDelay
    for (const { metadata } of deploymentsIn(world)) pause(metadata.name, null)
    putRight(world)
  }
}

/**
 * Users revert replicas that they requested and that no claim has taken, including Machines that do not exist
 * yet. They delete those Machines too: fewer replicas end none while another Machine is leaving, which still counts.
 */
function putRight(world: World): void {
  const { hub, kinds } = world.clusterApi
  for (const deployment of deploymentsIn(world).filter(isMember)) {
    const theirs = replicasOfUsers(world, deployment)
    if (theirs === 0) continue
    const { metadata, spec } = deployment
    hub.patch(kinds.deployment, namespace, metadata.name, {
      spec: { replicas: (spec?.replicas ?? 0) - theirs },
    })
    for (const machine of freeMachinesOf(world, deployment).slice(0, theirs))
      hub.delete(kinds.machine, namespace, machine.metadata.name)
  }
}
