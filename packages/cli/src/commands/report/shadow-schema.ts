/** What `tenon report --shadow` prints (adoption.md 2). */
import type { LeftPod, ShadowCase } from '@tenon/ask/report'
import {
  count,
  decimal,
  document,
  type JsonSchema,
  list,
  object,
  optional,
  text,
  time,
  words,
} from '@tenon/ask/schema'
import type { PrintedShadow } from './shadow.ts'

export const shadowSchema: JsonSchema = document<PrintedShadow>(
  'ShadowReport',
  'What Tenon would have done beside another autoscaler: tenon report --shadow. In every pair other is what was, and tenon what would have been.',
  {
    takenAt: time(),
    source: text('where the journal is from'),
    since: optional(time('as was asked for; absent for everything')),
    covered: optional(
      object<NonNullable<PrintedShadow['covered']>>(
        { from: time(), to: time(), hours: decimal('without the gaps') },
        'absent when nothing was observed',
      ),
    ),
    gaps: list(object<PrintedShadow['gaps'][number]>({ from: time(), to: time() }), 'the first ones'),
    gapCount: count(),
    gapHours: decimal(),
    restarts: count('how often observing began anew'),
    currency: optional(text('of all amounts')),
    cost: optional(
      object<NonNullable<PrintedShadow['cost']>>(
        {
          other: decimal(),
          tenon: decimal(),
          difference: decimal('tenon minus other'),
          byLaunches: decimal('part of the difference'),
          byMoves: decimal('part of the difference: removals and replacements, an upper bound'),
        },
        'totals of the hours that can be compared; absent when there are none',
      ),
    ),
    cases: list(
      object<ShadowCase>({
        kind: words<ShadowCase['kind']>({
          node: 'a node that was there',
          launch: 'a launch of Tenon without such a node',
        }),
        name: text('of a launch the id of its entry in the journal'),
        nodePool: optional(text()),
        instanceType: optional(text()),
        planned: optional(list(text(), 'types that Tenon would have launched in its place')),
        reason: optional(text('why Tenon would have removed or replaced it last')),
        other: decimal(),
        tenon: decimal(),
        difference: decimal(),
      }),
      'the largest differences; with otherCases they sum up to the difference of the costs',
    ),
    otherCases: object<PrintedShadow['otherCases']>({ count: count(), difference: decimal() }),
    notCompared: object<PrintedShadow['notCompared']>({
      unpricedHours: decimal('of nodes without a known price'),
      undecidedHours: decimal('of new nodes for which it is unknown what Tenon would have launched'),
      undecidedCost: decimal('of these, as far as prices are known'),
      unpricedLaunches: count('of Tenon'),
      otherCurrency: count('prices in another currency'),
      types: list(text(), 'the first without a price'),
    }),
    nodeHours: object<PrintedShadow['nodeHours']>({ other: decimal(), tenon: decimal() }),
    launches: object<PrintedShadow['launches']>({
      other: count(),
      tenon: count(),
      byType: list(
        object<PrintedShadow['launches']['byType'][number]>({
          instanceType: text(),
          other: count(),
          tenon: count(),
        }),
      ),
      hadRoom: count('nodes for whose pods Tenon saw room on a node that existed'),
    }),
    removals: object<PrintedShadow['removals']>({ other: count(), tenon: count(), replacements: count() }),
    evictions: object<PrintedShadow['evictions']>({
      other: count(),
      tenon: count(),
      unknownRemovals: count('nodes that left without notice'),
    }),
    waiting: object<PrintedShadow['waiting']>({
      pods: count('for which both are known'),
      otherSeconds: decimal('summed over these pods'),
      tenonSeconds: decimal('summed over these pods'),
      podsNotCompared: count(),
    }),
    leftPods: list(
      object<LeftPod>({ at: time(), pod: text('namespace/name'), node: text('that it got'), why: text() }),
      'the first pods that Tenon would have left without a node',
    ),
    leftPodCount: count(),
    unreadableLines: count('of files of the journal'),
  },
)
