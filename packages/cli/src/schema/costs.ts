/** What `tenon cost` and `tenon replay` print (ask.md 6, 11). */
import type { CostDimension, CostReport, ReplayAssumption } from '@tenon/ask'
import {
  byName,
  count,
  decimal,
  document,
  type JsonSchema,
  list,
  object,
  oneOfKind,
  only,
  optional,
  text,
  time,
  words,
} from '@tenon/ask/schema'
import type { PrintedReplay } from '../commands/replay.ts'
import type { PrintedCost, PrintedSpent } from '../cost/print.ts'
import { durationsSchema } from './simulation.ts'

export const costSchema: JsonSchema = document<PrintedCost>(
  'CostReport',
  'What the instances cost, and whom they serve: tenon cost.',
  {
    takenAt: time(),
    by: words<CostDimension>({ nodepool: '', namespace: '', owner: '', type: '', zone: '' }),
    currency: optional(text()),
    groups: list(
      object<PrintedCost['groups'][number]>({
        name: optional(text('absent for instances without one')),
        instances: optional(count('not by namespace and owner')),
        pods: count(),
        unpriced: count('instances, by namespace and owner pods, whose price is not known'),
        requestedPerHour: optional(decimal('absent when no price of the group is known')),
        idlePerHour: optional(decimal()),
        requestedPerMonth: optional(decimal('730 hours')),
        idlePerMonth: optional(decimal()),
      }),
    ),
    idle: object<PrintedCost['idle']>(
      { perHour: decimal(), perMonth: decimal() },
      'what nobody asks for, and no group has',
    ),
    total: object<PrintedCost['total']>({ perHour: decimal(), perMonth: decimal(), instances: count() }),
    unpriced: list(object<CostReport['unpriced'][number]>({ name: text(), type: optional(text()) })),
  },
)

export const spentSchema: JsonSchema = document<PrintedSpent>(
  'SpentReport',
  'What instances have cost over a time: tenon cost --since.',
  {
    from: time(),
    to: time(),
    journalFrom: optional(time('of the oldest entry of the journal')),
    currency: optional(text()),
    groups: list(
      object<PrintedSpent['groups'][number]>({
        nodePool: optional(text()),
        spent: decimal(),
        instanceHours: decimal(),
        unpriced: count(),
      }),
    ),
    spent: decimal(),
    unpriced: list(text(), 'NodeClaims without a known price'),
  },
)

type Assumption<Kind extends ReplayAssumption['kind']> = Extract<ReplayAssumption, { readonly kind: Kind }>

const assumption = oneOfKind<ReplayAssumption>({
  catalogue: object<Assumption<'catalogue'>>({
    kind: only('catalogue'),
    from: words<Assumption<'catalogue'>['from']>({
      recorded: 'every recorded offering can be bought at any time',
      nodes: 'the types that were seen on nodes can be bought',
    }),
  }),
  times: object<Assumption<'times'>>({
    kind: only('times'),
    times: object<Assumption<'times'>['times']>({
      bootMs: decimal(),
      stopMs: decimal(),
      nodeReadyMs: decimal(),
      podStartMs: decimal(),
      podStopMs: decimal(),
    }),
  }),
  foreignNodes: object<Assumption<'foreignNodes'>>({
    kind: only('foreignNodes'),
    count: count('nodes of no NodePool, which are left out'),
  }),
})

type Recorded = PrintedReplay['recording']

export const replaySchema: JsonSchema = document<PrintedReplay>(
  'ReplayReport',
  'What a recorded time would have cost under other rules: tenon replay.',
  {
    recording: object<Recorded>({
      source: text(),
      start: time(),
      end: time(),
      gaps: list(object<Recorded['gaps'][number]>({ from: time(), to: time(), because: text() })),
      cost: decimal('without nodes whose price is not known'),
      peakNodes: count(),
      launches: count(),
      evictions: count(),
      unpricedNodes: count(),
    }),
    variants: list(
      object<PrintedReplay['variants'][number]>({
        name: text(),
        seed: optional(count()),
        elapsedMs: decimal(),
        cost: decimal(),
        pricePerHour: decimal('at the end'),
        peakPricePerHour: decimal(),
        instanceHours: decimal(),
        instances: count('at the end'),
        peakInstances: count(),
        unpricedInstances: count(),
        launches: count(),
        moves: byName(count(), 'commands of voluntary disruption by reason and decision'),
        movesTotal: count(),
        evictions: count(),
        evictionsPer1000PodDays: decimal(),
        evictionsPerPod: decimal(),
        rejections: count('bound pods that their nodes refused'),
        pending: durationsSchema,
        pods: count(),
        peakPods: count(),
        podDays: decimal(),
        assumptions: list(assumption),
      }),
    ),
  },
  'none',
)
