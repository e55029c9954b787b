/** What `tenon simulate` prints (ask.md 5). */
import type { AddedNodes, BilledHour, DriftBudget, Durations, LeavingNode, SimulatedPrice } from '@tenon/ask'
import {
  budgetFields,
  count,
  decimal,
  document,
  type JsonSchema,
  list,
  object,
  optional,
  originSchema,
  type Schema,
  text,
  time,
  truth,
} from '@tenon/ask/schema'
import type { PlayedCluster, PrintedSimulation } from './print.ts'

type Nodes = PrintedSimulation['nodes']
type Played = NonNullable<PrintedSimulation['played']>

export const added: Schema<AddedNodes> = object<AddedNodes>({
  nodePool: text(),
  instanceType: text('the cheapest that holds the pods'),
  count: count(),
  pricePerHour: optional(decimal('of each; absent when it is not known')),
  pods: count('that would run on them'),
})

const leaving = object<LeavingNode>({
  nodeClaim: text(),
  node: optional(text()),
  nodePool: text(),
  instanceType: text(),
  pricePerHour: optional(decimal('absent when it is not known')),
  reason: optional(text('why it drifts; absent of one that is removed')),
})

export const price: Schema<SimulatedPrice> = object<SimulatedPrice>({
  pricePerHour: decimal('of all nodes with a known price'),
  unpriced: count('nodes whose price is not known'),
})

export const durationsSchema: Schema<Durations> = object<Durations>({
  count: count(),
  medianMs: optional(decimal()),
  p99Ms: optional(decimal()),
  maxMs: optional(decimal()),
})

const played = object<PlayedCluster>({
  cost: decimal('of all instances with a known price'),
  peakPricePerHour: decimal(),
  instances: count('at the end'),
  unpricedInstances: count(),
  launches: count(),
  moves: count('commands of voluntary disruption'),
  evictionsPerPod: decimal(),
  pending: durationsSchema,
  hours: list(
    object<BilledHour>({ startMs: decimal('Unix milliseconds'), cost: decimal(), instanceHours: decimal() }),
  ),
  leftOut: list(text(), 'what the simulated cluster does not serve, as KIND/NAME'),
})

export const simulationSchema: JsonSchema = document<PrintedSimulation>(
  'Simulation',
  'What changes would do: tenon simulate.',
  {
    takenAt: time('the clock of the decisions'),
    origin: originSchema,
    priceUnit: optional(text('currency of all prices')),
    podsThatRun: list(text(), 'pods that run with the change alone, as namespace/name'),
    podsThatWait: list(text(), 'pods that wait with the change alone'),
    podsThatMove: list(text(), 'pods on nodes that go, which run on others'),
    podsStillWaiting: count('pods that wait in both cases'),
    nodes: object<Nodes>({
      kept: count(),
      added: list(added),
      addedAnyway: list(added, 'launched without the change, too'),
      drifted: list(leaving),
      removed: list(leaving),
    }),
    budgets: list(
      object<DriftBudget>({ ...budgetFields, nodePool: text() }),
      'of the NodePools with drifted nodes',
    ),
    priceBefore: price,
    priceAfter: price,
    changesNothing: truth(),
    played: optional(
      object<Played>({ forSeconds: decimal(), before: played, after: played }, 'with --for and --observe'),
    ),
  },
)
