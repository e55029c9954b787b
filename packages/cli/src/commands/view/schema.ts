/** What `tenon view -o json` prints (console.md 2). */
import {
  byName,
  count,
  decimal,
  document,
  entrySchema,
  type JsonSchema,
  list,
  object,
  optional,
  type Schema,
  text,
  time,
  truth,
  words,
} from '@tenon/ask/schema'
import type {
  Absent,
  ClaimRow,
  GroupRow,
  Header,
  NextAction,
  NodeRow,
  OfferingRow,
  PendingPodRow,
  PendingReason,
  PodCounts,
  PoolRow,
  PriceSum,
  Problem,
  Share,
  TenonHeader,
  Why,
} from '@tenon/console'
import type { PrintedView } from './document.ts'

const amounts = byName(decimal(), 'by name of the resource: thousandths of a core, bytes, or a number')
const labels = byName(text())
const shares = byName(
  object<Share>({
    used: optional(decimal('what pods ask for; absent when pods could not be read')),
    allocatable: optional(decimal('absent until a node has told')),
  }),
  'by name of the resource: thousandths of a core, bytes, or a number',
)
const price = object<PriceSum>({
  perHour: optional(
    decimal('of what has a known price; absent when there is something and nothing of it has'),
  ),
  perMonth: optional(decimal('730 hours')),
  unpriced: count('without a known price, and in no sum'),
})
const why: Schema<Why> = object<Why>({
  cause: text('such as pods or budget'),
  message: text(),
  until: optional(time('when it ends by itself')),
})

const header = object<Header>({
  nodes: count(),
  pendingNodes: count('NodeClaims that have no Node yet'),
  resources: shares,
  price,
  currency: optional(text()),
  pods: optional(
    object<PodCounts>(
      { total: count(), pending: count(), running: count(), bound: count() },
      'without pods that have ended',
    ),
  ),
  tenon: optional(
    object<TenonHeader>({
      decisionsPerMinute: count(),
      next: optional(object<NextAction>({ text: text(), at: optional(time()), node: optional(text()) })),
      paused: optional(text('why; absent while nothing is paused')),
      savedToday: optional(decimal('since midnight UTC')),
    }),
  ),
  staleSince: optional(time('nothing was heard of the cluster since then')),
})

const problem = object<Problem>({
  id: text(),
  kind: words<Problem['kind']>({
    paused: '',
    rolloutHalted: '',
    offeringShort: 'launches avoid it because it failed',
    poolNotReady: '',
    groupNotScaled: 'or not shrunk, or left alone after a failure',
    nodeNotReady: 'for more than a minute',
    podsPending: 'for more than a minute',
  }),
  text: text(),
  since: optional(time()),
  object: optional(text('such as nodepool/web')),
})

const node = object<NodeRow>(
  {
    id: text('claim/NAME, or node/NAME for a node without a NodeClaim; stays while a claim becomes its node'),
    name: text('of the Node, else of the NodeClaim'),
    node: optional(text()),
    nodeClaim: optional(text()),
    providerId: optional(text('absent for a NodeClaim that was not launched')),
    nodePool: optional(text()),
    resources: shares,
    usage: optional(amounts),
    pods: optional(count()),
    podsMax: optional(decimal()),
    instanceType: optional(text()),
    zone: optional(text()),
    capacityType: optional(text()),
    pricePerHour: optional(decimal('absent when it is not known')),
    condition: words<NodeRow['condition']>({
      Ready: '',
      NotReady: '',
      Unknown: '',
      Launched: 'waits to be launched',
      Registered: 'waits to be registered',
      Initialized: 'waits to be initialized',
    }),
    conditionSince: optional(time()),
    conditionMessage: optional(text()),
    createdAt: optional(time()),
    cordoned: truth(),
    deleting: truth(),
    drifted: truth(),
    why: optional(why),
    labels,
  },
  'a node, or a NodeClaim that has none yet',
)

const claim = object<ClaimRow>({
  id: text(),
  name: text(),
  nodePool: optional(text()),
  nodeClass: optional(text()),
  instanceType: optional(text()),
  zone: optional(text()),
  capacityType: optional(text()),
  node: optional(text()),
  providerId: optional(text()),
  imageId: optional(text()),
  waitsFor: optional(
    words<NonNullable<ClaimRow['waitsFor']>>({ Launched: '', Registered: '', Initialized: '' }),
  ),
  waitsSince: optional(time()),
  waitsMessage: optional(text()),
  ready: text('status of the condition'),
  pricePerHour: optional(decimal()),
  createdAt: optional(time()),
  deleting: truth(),
  drifted: truth(),
  why: optional(why),
  labels,
})

const pool = object<PoolRow>({
  id: text(),
  name: text(),
  nodeClass: optional(text()),
  weight: optional(decimal()),
  claims: count(),
  nodes: count(),
  drifted: count(),
  limits: shares,
  price,
  ready: text('status of the condition'),
  readyMessage: optional(text()),
  paused: optional(text()),
  pausedBy: optional(
    words<NonNullable<PoolRow['pausedBy']>>({
      nodepool: 'its own pause',
      cluster: 'that of the cluster',
    }),
  ),
  halted: optional(text()),
  budgets: list(text()),
  createdAt: optional(time()),
  labels,
})

const group = object<GroupRow>({
  id: text(),
  name: text(),
  nodes: optional(count('registered; figures are absent when it is left out')),
  ready: optional(count()),
  minSize: optional(count()),
  maxSize: optional(count()),
  targetSize: optional(count()),
  state: words<GroupRow['state']>({
    Healthy: '',
    Unhealthy: 'too many of its nodes are not ready',
    InProgress: 'nodes are on their way',
    Backoff: 'left alone after a failure',
    LeftOut: 'no group, because of a mistake in its settings',
  }),
  message: optional(text('why it is not scaled, not shrunk, or left alone')),
})

const pendingPod = object<PendingPodRow>({
  id: text('NAMESPACE/NAME'),
  namespace: text(),
  name: text(),
  owner: optional(text('such as replicaset/web-5d4')),
  requests: amounts,
  reason: optional(
    object<PendingReason>({
      from: words<PendingReason['from']>({
        tenon: 'as tenon explain says it',
        scheduler: 'as the condition PodScheduled says it',
      }),
      code: text(),
      message: text(),
    }),
  ),
  plannedFor: optional(text('node or NodeClaim')),
  createdAt: optional(time()),
  pendingSince: optional(time('since when the scheduler finds no place')),
  deleting: truth(),
  labels,
})

const offering = object<OfferingRow>({
  id: text(),
  nodePools: list(text(), 'that may buy it'),
  instanceType: text(),
  zone: text(),
  capacityType: text(),
  pricePerHour: optional(decimal()),
  available: truth(),
  because: optional(text('why it cannot be bought')),
  until: optional(time('when it is tried again')),
})

export const viewSchema: JsonSchema = document<PrintedView>(
  'ClusterView',
  'One state of a cluster: tenon view -o json.',
  {
    takenAt: time(),
    header,
    problems: list(problem),
    absent: list(object<Absent>({ what: text(), why: text() }), 'what is not shown, and why'),
    nodes: list(node),
    claims: list(claim),
    pools: list(pool),
    groups: list(group, 'of the Cluster Autoscaler mode'),
    pendingPods: list(pendingPod),
    decisions: list(entrySchema),
    offerings: list(offering),
  },
  'none',
)
