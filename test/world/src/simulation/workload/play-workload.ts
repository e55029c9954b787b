/** Plays the complete workload of a story. */
import type { Clock, Random } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { WorldCloud } from '../cloud/world-cloud.ts'
import type { EventLog } from '../event-log.ts'
import { type Story, type WorkloadKind, workloadKinds } from '../story.ts'
import {
  barePods,
  bursts,
  daemonSets,
  dailyWaves,
  deployments,
  gpus,
  jobs,
  restarts,
  statefulSets,
  unsatisfiable,
} from './applications.ts'
import { buffers } from './buffers.ts'
import { devices } from './devices.ts'
import { affinities, disruptionBudgets, doNotDisrupt, priorities, spreads } from './constraints.ts'
import { gangs } from './gangs.ts'
import { abandonedClaims, manualDeletions, protectedNodes, templateUpgrades } from './meddling.ts'
import {
  classDrift,
  createGpuPool,
  createPools,
  createStaticPool,
  poolEdits,
  poolRollouts,
  priceChanges,
} from './pools.ts'
import { wanted } from './wanted.ts'
import { Dice, WorkloadContext } from './workload-context.ts'

/** Kinds that only change the pools. */
type PoolTrait = 'expiry' | 'consolidation'

const players: Readonly<Record<Exclude<WorkloadKind, PoolTrait>, (context: WorkloadContext) => void>> = {
  deployments,
  daemonSets,
  jobs,
  statefulSets,
  bursts,
  dailyWaves,
  disruptionBudgets,
  priorities,
  affinities,
  spreads,
  gpus: (context) => {
    if (context.cloud.wares.gpuTypes.length === 0) return
    createGpuPool(context)
    gpus(context)
  },
  doNotDisrupt,
  barePods,
  poolEdits,
  priceChanges,
  classDrift,
  templateUpgrades,
  manualDeletions,
  staticPools: createStaticPool,
  unsatisfiable,
  restarts,
  poolRollouts,
  protectedNodes,
  abandonedClaims,
  buffers,
  devices,
  gangs,
  wanted,
}

/** Kinds that every story has. */
const always: ReadonlySet<WorkloadKind> = new Set(['deployments', 'daemonSets'])
/** Kinds that no seed draws, so that known seeds still replay the same. */
const onlyIfNamed: ReadonlySet<WorkloadKind> = new Set(['buffers', 'devices', 'gangs', 'wanted'])
/** The probability of any other kind. */
const presence = 0.6

/** The kinds of a story: drawn from its seed, without those it omits. */
export function kindsOf(story: Story, random: Random): ReadonlySet<WorkloadKind> {
  const drawn = [...kindsDrawn(story, random)]
  return new Set(drawn.filter((kind) => !story.withoutWorkloads.includes(kind)))
}

function kindsDrawn(story: Story, random: Random): ReadonlySet<WorkloadKind> {
  const certain = new Set([...always, ...(story.withWorkloads ?? [])])
  return new Set(
    workloadKinds.filter(
      (kind) =>
        certain.has(kind) ||
        (!onlyIfNamed.has(kind) && new Dice(random.fork(`presence/${kind}`)).chance(presence)),
    ),
  )
}

/** Starts all kinds; they end by themselves when `isOver` holds. */
export function playWorkload(
  world: World,
  story: Story,
  parts: {
    readonly cloud: WorldCloud
    readonly kinds: ReadonlySet<WorkloadKind>
    readonly clock: Clock
    readonly random: Random
    readonly log: EventLog
    readonly isOver: () => boolean
  },
): void {
  const { cloud, clock, log, isOver, random, kinds } = parts
  const drawn = kindsDrawn(story, random)
  const handsOf = (label: string): WorkloadContext =>
    new WorkloadContext({
      world,
      cloud,
      dice: new Dice(random.fork(label)),
      nodes: story.nodes,
      drawn,
      clock,
      log,
      isOver,
    })
  createPools(handsOf('pools'), kinds)
  for (const kind of workloadKinds) {
    if (kind !== 'expiry' && kind !== 'consolidation' && kinds.has(kind)) players[kind](handsOf(kind))
  }
}
