/** The rows of the table: workloads, and the reference's figures. */
import { type InstanceType, labels, type Pod, type Requirement, wellKnownLabels } from '@tenon/api'
import type { PoolInput, SchedulingInput, SchedulingPolicy } from '@tenon/engine'
import { defaultCatalogue } from '@tenon/provider-kwok'
import { SeededRandom } from '@tenon/runtime'
import { devicesInput } from './devices-workload.ts'
import { gangsInput } from './gangs-workload.ts'
import { fakeCatalogue, oneOf, pool } from './catalogue.ts'
import { diverse, eightShapes, preferences } from './pods.ts'
import { poolsInput } from './pools-workload.ts'
import { teamsInput } from './team-workload.ts'

/** `none` keeps the first fit. */
export type Improvement = 'none' | 'planned' | 'free'

/** Measured with kubernetes-sigs/karpenter (main, 2026-08-20) on a host with two cores. */
interface Reference {
  readonly ms?: number
  readonly nodes?: number
  /** Per hour. */
  readonly price?: number
}

export interface Workload {
  /** Also the seed of its random choices. */
  readonly name: string
  readonly pods: number
  readonly preferences: SchedulingPolicy['preferences']
  /** Set if the row depends on it; otherwise a command-line option decides. */
  readonly improvement?: Improvement
  readonly reference: Reference
  /**
   * Resources of nodes in the lower bound of the price. The price rows use `capacity`, which gives the
   * published 29.30 for both; `allocatable`, without kube-reserved and DaemonSets, gives a tighter bound (29.31
   * with all types, 29.46 below 17 cores).
   */
  readonly boundOn: 'capacity' | 'allocatable'
  readonly make: (random: SeededRandom) => Omit<SchedulingInput, 'policy'>
}

function emptyCluster(pods: readonly Pod[], nodePool: PoolInput): Omit<SchedulingInput, 'policy'> {
  return {
    pods,
    nodes: [],
    daemons: [],
    topology: { pods: [], nodes: new Map(), namespaces: new Map([['default', {}]]) },
    pools: [nodePool],
  }
}

const diverseReferences: Readonly<Record<number, Reference>> = {
  1: { ms: 1.2, nodes: 1 },
  500: { ms: 990, nodes: 100 },
  1000: { ms: 2580, nodes: 200 },
  2000: { ms: 4990, nodes: 400 },
  5000: { ms: 15_200, nodes: 1000 },
  10_000: { ms: 29_800, nodes: 2000 },
}

/** So many diverse pods for an empty cluster. */
export const diverseRow = (count: number): Workload => ({
  name: `diverse(${count})`,
  pods: count,
  preferences: 'Respect',
  reference: diverseReferences[count] ?? {},
  boundOn: 'allocatable',
  make: (random) => emptyCluster(diverse(random, count), pool('default', fakeCatalogue())),
})

/** The same with the cheaper of several plans. */
const plannedRow = (count: number): Workload => ({
  ...diverseRow(count),
  name: `diverse(${count}) planned`,
  improvement: 'planned',
})

const preferencesRow = (policy: 'Respect' | 'Ignore', reference: Reference): Workload => ({
  name: `preferences(4000) ${policy}`,
  pods: 4000,
  preferences: policy,
  reference,
  boundOn: 'allocatable',
  make: (random) => emptyCluster(preferences(random, 4000), pool('default', fakeCatalogue())),
})

/** 5000 pods that are spread over zones; with teams, over those of their own NodePool. */
const teamsRow = (teams: number): Workload => ({
  name: `spread(5000) ${teams} teams`,
  pods: 5000,
  preferences: 'Respect',
  reference: {},
  boundOn: 'allocatable',
  make: (random) => teamsInput(random, 5000, teams, fakeCatalogue()),
})

function priceRow(
  name: string,
  improvement: Improvement,
  price: number,
  more: readonly Requirement[] = [],
): Workload {
  const requirements = [oneOf(labels.os, 'linux'), oneOf(labels.capacityType, 'on-demand'), ...more]
  const catalogue: readonly InstanceType[] = defaultCatalogue()
  return {
    name: `eight-shapes ${name} ${improvement}`,
    pods: 800,
    preferences: 'Respect',
    improvement,
    reference: { price },
    boundOn: 'capacity',
    make: () => emptyCluster(eightShapes(), pool('default', catalogue, { requirements })),
  }
}

/** 100 groups of 64 pods, each in one zone. */
const zonalGangs: Workload = {
  name: 'gangs(100 x 64) in zones',
  pods: 6400,
  preferences: 'Respect',
  reference: {},
  boundOn: 'allocatable',
  make: (random) =>
    gangsInput(random, defaultCatalogue(), {
      gangs: 100,
      members: 64,
      inOneZone: true,
      others: 0,
      areGroups: true,
    }),
}

/** 1000 groups of 8 pods and 5000 others; or the same pods without groups. */
const mixedGangs = (areGroups: boolean): Workload => ({
  name: areGroups ? 'gangs(1000 x 8) + 5000' : 'gangs(1000 x 8) + 5000, as pods',
  pods: 13_000,
  preferences: 'Respect',
  reference: {},
  boundOn: 'allocatable',
  make: () =>
    gangsInput(new SeededRandom('gangs'), defaultCatalogue(), {
      gangs: 1000,
      members: 8,
      inOneZone: false,
      others: 5000,
      areGroups,
    }),
})

/** Pods with one device each, on nodes with eight; the next row has twice as many of both. */
const devicesRow = (pods: number, nodes: number): Workload => ({
  name: `devices(${pods}) on ${nodes}`,
  pods,
  preferences: 'Respect',
  reference: {},
  boundOn: 'allocatable',
  make: (random) => devicesInput(random, { pods, nodes }),
})

const below17: Requirement = { key: 'karpenter.kwok.sh/instance-cpu', operator: 'Lt', values: ['17'] }

/** Every row, in order of the table. */
export const workloads: readonly Workload[] = [
  ...[1, 50, 100, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000].map(diverseRow),
  plannedRow(1000),
  plannedRow(10_000),
  preferencesRow('Respect', { ms: 68_900, nodes: 4000 }),
  preferencesRow('Ignore', { ms: 1260, nodes: 6 }),
  {
    name: 'pools(5000)',
    pods: 5000,
    preferences: 'Respect',
    reference: {},
    boundOn: 'allocatable',
    make: (random) => poolsInput(random, 5000),
  },
  teamsRow(0),
  teamsRow(20),
  zonalGangs,
  mixedGangs(true),
  mixedGangs(false),
  devicesRow(2500, 500),
  devicesRow(5000, 1000),
  devicesRow(10_000, 2000),
  priceRow('all', 'planned', 35.97),
  priceRow('all', 'free', 35.97),
  priceRow('cpu<17', 'planned', 34.38, [below17]),
  priceRow('cpu<17', 'free', 34.38, [below17]),
]

/** A new input; deterministic. */
export function inputOf(workload: Workload, improvement: Improvement): SchedulingInput {
  return {
    ...workload.make(new SeededRandom(workload.name)),
    policy: {
      preferences: workload.preferences,
      minValues: 'Strict',
      wellKnownLabels: new Set(wellKnownLabels),
      maxInstanceTypes: 600,
      ...(improvement !== 'none' && { improvement }),
    },
  }
}
