/** What `tenon cost` prints (ask.md 11). */
import type { CostDimension, CostReport } from '@tenon/ask'
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
import type { PrintedCost, PrintedSpent } from './print.ts'

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
    surcharge: optional(
      object<NonNullable<PrintedCost['surcharge']>>(
        { perHour: decimal(), perMonth: decimal() },
        'the part of the total that NodePools add for each node (annotation tenon.sh/price-per-node)',
      ),
    ),
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
