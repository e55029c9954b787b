/** The faults of a story, and the repairs that no autoscaler can do. */
import { integerBetween, type Random } from '@tenon/runtime'
import type { AutoscalerWorld } from './autoscaler-world.ts'
import type { Supervisor } from './supervisor.ts'

const changes = [
  'scale-sks-nodepool',
  'scale-instance-pool',
  'evict-sks-nodepool-members',
  'evict-instance-pool-members',
] as const
const scales = changes.slice(0, 2)
const reads = [
  'get-instance-pool',
  'get-instance',
  'list-sks-clusters',
  'get-quota',
  'get-operation',
] as const

type Play = (world: AutoscalerWorld, supervisor: Supervisor, dice: Random) => void | Promise<void>

const plays: readonly Play[] = [
  /** Reads fail for a while. */
  ({ cluster }, _, dice) => {
    for (const operation of reads)
      cluster.cloud.faults.add({
        operation,
        times: integerBetween(dice, 1, 30),
        effect: { kind: 'refuse', status: 500 },
      })
  },
  /** Reads of one kind fail repeatedly. */
  ({ cluster }, _, dice) => {
    const effect = { kind: 'refuse', status: 503 } as const
    cluster.cloud.faults.add({ operation: pick(dice, reads), times: 60, effect })
  },
  ({ cluster }, _, dice) => {
    const operation = pick(dice, changes)
    cluster.cloud.faults.add({ operation, times: integerBetween(dice, 1, 4), effect: { kind: 'lostReply' } })
  },
  ({ cluster }, _, dice) => {
    const operation = pick(dice, changes)
    const effect = { kind: 'refuse', status: integerBetween(dice, 0, 1) === 0 ? 500 : 403 } as const
    cluster.cloud.faults.add({ operation, times: 3, effect })
  },
  ({ cluster }, _, dice) => {
    const effect = { kind: 'failOperation', reason: 'busy', message: 'try later' } as const
    cluster.cloud.faults.add({ operation: pick(dice, changes), times: 1, effect })
  },
  ({ cluster }, _, dice) => {
    const effect = { kind: 'hangOperation' } as const
    cluster.cloud.faults.add({ operation: pick(dice, changes), times: 1, effect })
  },
  ({ cluster }, _, dice) => {
    const kind = pick(dice, ['neverBoots', 'neverJoins', 'neverReady'] as const)
    for (const operation of scales) cluster.cloud.faults.add({ operation, times: 1, effect: { kind } })
  },
  (world, _, dice) => {
    const members = world.cluster.cloud.instances()
    const { id } = pick(dice, members)
    world.cluster.cloud.interventions.setInstanceState(id, pick(dice, ['error', 'stopped'] as const))
  },
  /** A user deletes a member, or resizes a pool. */
  (world, _, dice) => {
    const { name, min, max } = pick(dice, world.pools)
    world.cluster.cloud.interventions.resizePool(world.poolId(name), integerBetween(dice, min, max))
  },
  (_, supervisor, dice) => {
    supervisor.crash(dice)
  },
  (_, supervisor, dice) => {
    supervisor.hang(dice)
  },
  async (_, supervisor) => {
    await supervisor.restart()
  },
]

export const playFault: Play = async (world, supervisor, dice) => {
  await pick(dice, plays)(world, supervisor, dice)
}

/** Ends all faults, and deletes broken instances and hanging changes as an administrator would. */
export function repair(world: AutoscalerWorld): void {
  const { cloud } = world.cluster
  cloud.faults.clear()
  const ready = new Set(
    world
      .nodes()
      .filter(({ status }) =>
        status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
      )
      .map(({ metadata }) => metadata.name),
  )
  for (const { id, name, state, nodeName } of cloud.instances())
    if (state !== 'running' || (nodeName !== undefined && !ready.has(name)))
      cloud.interventions.deleteInstance(id)
  for (const { name, min, max } of world.pools) {
    const id = world.poolId(name)
    cloud.interventions.setPoolState(id, 'running')
    cloud.interventions.resizePool(id, Math.min(max, Math.max(min, world.members(name).length)))
  }
}

function pick<T>(dice: Random, all: readonly T[]): T {
  const found = all[integerBetween(dice, 0, all.length - 1)]
  if (found === undefined) throw new Error('there is nothing to choose from')
  return found
}
