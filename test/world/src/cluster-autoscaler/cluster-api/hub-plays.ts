/** What people and infrastructure do in a story, and the repairs that no autoscaler can do. */
import { ownValue } from '@tenon/api'
import { integerBetween, type Random, rfc3339 } from '@tenon/runtime'
import { boundTo, isLeaving, namespace } from '../../simulation/cloud/hub-objects.ts'
import type { Supervisor } from '../supervisor.ts'
import type { HubChecker } from './hub-checker.ts'
import type { HubTrouble } from './hub-trouble.ts'
import { deleteMachine, type HubWorld, type WorldGroup } from './hub-world.ts'

const minute = 60_000

export interface Stage {
  readonly world: HubWorld
  readonly supervisor: Supervisor
  readonly trouble: HubTrouble
  readonly checker: HubChecker
}

type Play = (stage: Stage, dice: Random) => void | Promise<void>

const effects = [
  { kind: 'neverJoins' },
  { kind: 'neverProvided' },
  { kind: 'neverReady' },
  { kind: 'fails', afterMs: 5_000, reason: 'CreateError', message: 'not here' },
  { kind: 'slow', providerIdMs: 300_000, nodeMs: 120_000 },
  { kind: 'slowDeletion', moreMs: 600_000 },
] as const

const plays: readonly Play[] = [
  ({ trouble }, dice) => trouble.begin(integerBetween(dice, 1, 8) * minute),
  ({ trouble }, dice) => trouble.begin(integerBetween(dice, 1, 8) * minute),
  ({ trouble }, dice) => trouble.delay(integerBetween(dice, 1, 10) * minute),
  ({ trouble }, dice) => trouble.delay(integerBetween(dice, 1, 10) * minute),
  ({ trouble }) => trouble.cut(),
  ({ world }, dice) => {
    world.cluster.cloud.faults.add({ times: 1, effect: pick(dice, effects) })
  },
  /** A person writes replicas. */
  ({ world, checker }, dice) => {
    const { name, bounds } = pick(dice, groupsOf(world))
    const { hub, kinds } = world.cluster.cloud
    const before = world.deployment(name)?.spec?.replicas ?? 0
    const after = before + (integerBetween(dice, 0, 2) === 0 ? -1 : 1)
    if (bounds === undefined || after > bounds.max || after < bounds.min) return
    checker.allowResize(name, after - before)
    checker.allowContest()
    hub.setScale(kinds.deployment, namespace, name, after)
  },
  /** A person changes the replicas of the topology. */
  ({ world, checker }, dice) => {
    const kept = world.groups.find(({ topology }) => topology?.replicas !== undefined)
    if (kept?.bounds === undefined) return
    checker.allowContest()
    world.keepReplicas(kept.name, integerBetween(dice, kept.bounds.min, kept.bounds.max))
  },
  /** A person deletes a Machine. */
  ({ world, checker }, dice) => {
    const there = world.members().filter((machine) => !isLeaving(machine))
    if (there.length === 0) return
    const machine = pick(dice, there)
    checker.allow(machine)
    world.cluster.cloud.hub.delete(world.cluster.cloud.kinds.machine, namespace, machine.metadata.name)
  },
  /** A person marks a Machine to go first, and changes their mind later. */
  ({ world }, dice) => {
    const free = world
      .members()
      .filter(
        (machine) =>
          !isLeaving(machine) && ownValue(machine.metadata.annotations, deleteMachine) === undefined,
      )
    if (free.length === 0) return
    const { name } = pick(dice, free).metadata
    const value = rfc3339(world.clock.now())
    mark(world, name, value)
    world.clock.after(integerBetween(dice, 5, 20) * minute, () => {
      const machine = world.machines().find(({ metadata }) => metadata.name === name)
      if (ownValue(machine?.metadata.annotations, deleteMachine) === value) mark(world, name, null)
    })
  },
  /** The controller of NodeClaims takes a Machine of a group. */
  ({ world }, dice) => {
    const free = world
      .members()
      .filter(
        (machine) =>
          !isLeaving(machine) && ownValue(machine.metadata.annotations, deleteMachine) === undefined,
      )
    if (free.length > 0) world.bind(pick(dice, free), 'general-x2x9q')
  },
  /** A machine is lost, for the MachineHealthCheck to find. */
  ({ world }, dice) => {
    const there = world.members()
    if (there.length > 0) world.cluster.cloud.lose(namespace, pick(dice, there).metadata.name)
  },
  /** A rollout begins. */
  ({ world }, dice) => {
    const { hub, kinds } = world.cluster.cloud
    const failureDomain = `domain-${integerBetween(dice, 0, 9)}`
    hub.patch(kinds.deployment, namespace, pick(dice, groupsOf(world)).name, {
      spec: { template: { spec: { failureDomain } } },
    })
  },
  ({ world }, dice) => {
    const { name } = pick(dice, groupsOf(world))
    world.pause(name, '')
    world.clock.after(integerBetween(dice, 2, 10) * minute, () => world.pause(name, null))
  },
  ({ supervisor }, dice) => supervisor.crash(dice),
  async ({ supervisor }) => {
    await supervisor.restart()
  },
]

export const playFault: Play = async (stage, dice) => {
  await pick(dice, plays)(stage, dice)
}

/** Every Machine of the Cluster but those of its control plane is replaced when it is not healthy. */
export function addHealthCheck(world: HubWorld): void {
  const { hub, kinds } = world.cluster.cloud
  hub.create(kinds.healthCheck, {
    apiVersion: `${kinds.healthCheck.group}/${kinds.healthCheck.version}`,
    kind: kinds.healthCheck.kind,
    metadata: { name: 'all', namespace },
    spec: {
      clusterName: 'workload',
      selector: {
        matchExpressions: [{ key: 'cluster.x-k8s.io/control-plane', operator: 'DoesNotExist' }],
      },
      checks: {
        nodeStartupTimeoutSeconds: 1_800,
        unhealthyNodeConditions: [
          { type: 'Ready', status: 'Unknown', timeoutSeconds: 300 },
          { type: 'Ready', status: 'False', timeoutSeconds: 900 },
        ],
      },
    },
  })
}

/** Ends all faults, and takes back what people have begun. */
export function repair({ world, trouble }: Stage): void {
  trouble.clear()
  world.cluster.cloud.faults.clear()
  for (const { name } of groupsOf(world)) world.pause(name, null)
  for (const machine of world.members()) {
    const { annotations, name } = machine.metadata
    if (boundTo(machine) === 'uid-general-x2x9q') world.bind(machine, undefined)
    const isTheirs = !Number.isNaN(Date.parse(ownValue(annotations, deleteMachine) ?? ''))
    if (isTheirs) mark(world, name, null)
  }
}

function mark(world: HubWorld, name: string, value: string | null): void {
  const { hub, kinds } = world.cluster.cloud
  hub.patch(kinds.machine, namespace, name, { metadata: { annotations: { [deleteMachine]: value } } })
}

const groupsOf = ({ groups }: HubWorld): readonly WorldGroup[] =>
  groups.filter(({ bounds }) => bounds !== undefined)

function pick<T>(dice: Random, all: readonly T[]): T {
  const found = all[integerBetween(dice, 0, all.length - 1)]
  if (found === undefined) throw new Error('there is nothing to choose from')
  return found
}
