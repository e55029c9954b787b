/** What `tenon replay` prints (ask.md 6). */
import type { ReplayAssumption } from '@tenon/ask'
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
import { durationsSchema } from '../simulate/schema.ts'
import type { PrintedReplay } from './run.ts'

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
