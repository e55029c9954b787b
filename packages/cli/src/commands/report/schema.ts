/** What `tenon report` prints (adoption.md 1). */
import type { ObstacleKind, ReportedDimension, RequestedPart, RiskKind } from '@tenon/ask/report'
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
  truth,
  words,
} from '@tenon/ask/schema'
import type { FoundAutoscaler } from './gather.ts'
import type { NextStep } from './next-steps.ts'
import type {
  PrintedCostTable,
  PrintedGroup,
  PrintedMoney,
  PrintedObstacle,
  PrintedPlan,
  PrintedReport,
} from './printed.ts'

const money = object<PrintedMoney>({ perHour: decimal(), perMonth: decimal('730 hours') })
const part = object<RequestedPart>({ requested: decimal(), allocatable: decimal() })
const table = object<PrintedCostTable>({
  groups: list(
    object<PrintedGroup>({
      name: optional(text('absent for nodes without one')),
      instances: optional(count('not by namespace and owner')),
      pods: count(),
      unpriced: count('nodes, by namespace and owner pods, whose price is not known'),
      perMonth: optional(decimal('absent when no price of the group is known')),
      idlePerMonth: optional(decimal('of it what nobody requests; not by namespace and owner')),
    }),
  ),
  idlePerMonth: decimal('what nobody requests, and no group has'),
})
const plan = object<PrintedPlan>({
  nodes: count(),
  removed: count(),
  evictions: count('the fewest pods that have to move'),
  price: money,
  savedPerMonth: decimal(),
  added: list(
    object<PrintedPlan['added'][number]>({
      nodePool: text(),
      instanceType: text(),
      count: count(),
      pricePerHour: optional(decimal()),
    }),
  ),
})

export const reportSchema: JsonSchema = document<PrintedReport>(
  'ClusterReport',
  'What a cluster costs, what it could cost, what stands in the way, and what may go wrong: tenon report.',
  {
    takenAt: time(),
    source: text('where the facts are from'),
    currency: optional(text()),
    autoscalers: list(
      object<FoundAutoscaler>({
        kind: words<FoundAutoscaler['kind']>({ tenon: '', karpenter: '', clusterAutoscaler: '' }),
        by: text('how it shows'),
      }),
    ),
    notRead: list(text(), 'kinds that may not be read, by plural'),
    unreadable: list(text(), 'objects that are in no figure, and why'),
    now: object<PrintedReport['now']>({
      nodes: count(),
      pods: count(),
      price: optional(money),
      idle: optional(money),
      cpu: part,
      memory: part,
    }),
    unpriced: list(
      object<PrintedReport['unpriced'][number]>({ name: text(), type: optional(text()) }),
      'nodes whose price is not known: in no sum, and kept by each plan',
    ),
    cost: object<Readonly<Record<ReportedDimension, PrintedCostTable>>>({
      nodepool: table,
      type: table,
      namespace: table,
      owner: table,
    }),
    plans: optional(object<NonNullable<PrintedReport['plans']>>({ byMoves: plan, fromNothing: plan })),
    obstacles: list(
      object<PrintedObstacle>({
        kind: words<ObstacleKind>({
          budget: '',
          doNotDisrupt: '',
          nodePool: 'NodePools that keep nodes with pods',
          localVolume: '',
          nodePoolTypes: 'NodePools that exclude cheaper types',
          singleReplica: '',
          daemons: '',
          noRequests: '',
          unusedRequests: '',
        }),
        perMonth: optional(decimal('absent when it is not known')),
        nodes: count(),
        pods: count(),
        items: list(
          object<PrintedObstacle['items'][number]>({ name: text(), nodes: count(), pods: count() }),
          'those on the most nodes',
        ),
        itemCount: count(),
      }),
      'the most expensive first',
    ),
    isUsageKnown: truth('whether metrics.k8s.io told what pods use'),
    risks: list(
      object<PrintedReport['risks'][number]>({
        kind: words<RiskKind>({
          noType: 'pods that wait and would get no node',
          noSecondHome: 'pods that run and would fit no node again',
          spread: '',
          limit: '',
          oldNode: '',
          versionSkew: '',
        }),
        items: list(
          object<PrintedReport['risks'][number]['items'][number]>({ name: text(), detail: optional(text()) }),
        ),
        itemCount: count(),
      }),
    ),
    next: list(
      object<NextStep>({
        title: text(),
        file: optional(object<NonNullable<NextStep['file']>>({ name: text(), text: text() })),
        commands: list(text()),
      }),
    ),
  },
)
