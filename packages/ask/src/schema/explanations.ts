/** Answers of `tenon explain` (ask.md 2). */
import type { DisruptionReason, ResourceList } from '@tenon/api'
import type { NodeObstacle, Saving, StuckReason } from '@tenon/operator'
import type { AsOf } from '../explain/as-of.ts'
import type { ClaimPhase } from '../explain/claim-phase.ts'
import type { PrintedNode, PrintedPod } from '../explain/documents.ts'
import type { NodesAnswer } from '../explain/existing-nodes.ts'
import type { NodePoolExplanation, PoolBudget, PoolSchedule } from '../explain/node-pool.ts'
import type { PendingExplanation, PoolAnswer } from '../explain/pending.ts'
import type { PodPlace } from '../explain/pod.ts'
import type { BlockedPods, RequestExplanation } from '../explain/request.ts'
import type { WaitingGroup, WorkloadExplanation, WorkloadPods } from '../simulate/workload.ts'
import type { GroupClaim, GroupPods, PodGroupExplanation } from '../explain/pod-group.ts'
import type { PodHold } from '../explain/running-pod.ts'
import {
  byName,
  count,
  decimal,
  type Fields,
  type JsonSchema,
  list,
  object,
  optional,
  type Schema,
  text,
  time,
  truth,
  words,
} from './build.ts'
import { document } from './document.ts'
import { entrySchema } from './journal.ts'
import { missSchema } from './misses.ts'

const resources: Schema<ResourceList> = byName(text(), 'quantities by resource')

const asOf = object<AsOf>({
  facts: time('when the facts were read'),
  source: words<AsOf['source']>({
    controller: 'the one that decides',
    standby: 'one that waits to decide',
    objects: 'those of a cluster, without a controller',
  }),
  by: text('identity of the controller, or address of the API server'),
  catalogue: optional(text('where the instance types come from, where no controller was asked')),
})

const phase = object<ClaimPhase>({
  waitsFor: words<ClaimPhase['waitsFor']>({ Launched: '', Registered: '', Initialized: '' }),
  message: optional(text()),
  forSeconds: count(),
  medianSeconds: optional(count('of the last hundred NodeClaims of the NodePool that took the step')),
  until: optional(time('when the NodeClaim is given up')),
  isOverdue: truth(),
  otherwise: text('what happens if the step is not taken'),
})

export const obstacleFields: Fields<NodeObstacle> = {
  cause: words<NodeObstacle['cause']>({
    node: 'its state',
    annotation: 'an annotation of it',
    nodePool: 'its NodePool',
    pod: 'a pod on it',
    podDisruptionBudget: 'a PodDisruptionBudget of a pod on it',
    command: 'it goes',
    failedCommand: 'commands came to nothing, and it is not tried again yet',
    brake: 'disruption is paused',
    budget: 'no more nodes of its NodePool may go now',
    policy: 'its NodePool does not want it, or not yet',
    repair: 'it is unhealthy',
    pods: 'its pods have no other place',
    price: 'nothing cheaper serves',
    score: 'the disruption is not worth it',
    possible: 'it may go',
    unknown: 'nobody has looked yet',
  }),
  message: text(),
  until: optional(time('when it ends by itself')),
}

export const stuckSchema = optional(
  words<StuckReason>({
    never_allows: 'only PodDisruptionBudgets hold it that can never allow an eviction',
    several_budgets: 'only PodDisruptionBudgets hold it, of which several cover a pod',
  }),
)

export const obstacleSchema: Schema<NodeObstacle> = object<NodeObstacle>(obstacleFields)

const saving = object<Saving>({
  replacements: list(
    object<Saving['replacements'][number]>({
      nodePool: text(),
      instanceType: text('the cheapest; empty when none is left'),
      pricePerHour: optional(decimal()),
    }),
  ),
  saves: optional(decimal('per hour; negative when the replacements cost more')),
  mustSave: optional(decimal('per hour; with isMore, more than that')),
  isMore: truth(),
})

const nodeFields: Fields<PrintedNode> = {
  node: optional(text()),
  nodeClaim: optional(text()),
  nodePool: optional(text()),
  asOf,
  summary: text('what is the case, in one sentence'),
  case: words<PrintedNode['case']>({
    unmanaged: 'no NodeClaim',
    starting: '',
    running: '',
    leaving: '',
    gone: 'only the journal knows of it',
  }),
  instanceType: optional(text()),
  zone: optional(text()),
  capacityType: optional(text()),
  pricePerHour: optional(decimal('absent when it is not known')),
  currency: optional(text()),
  obstacles: list(obstacleSchema, 'what keeps it, in the order in which it counts'),
  stuck: stuckSchema,
  at: optional(time('when the first obstacle was found out')),
  saving: optional(saving),
  drift: optional(
    object<NonNullable<PrintedNode['drift']>>({
      reason: text(),
      fields: list(text(), 'of the NodePool, that are other than those of the node'),
    }),
  ),
  phase: optional(phase),
  holds: optional(
    object<NonNullable<PrintedNode['holds']>>({
      pods: count(),
      daemonPods: count('of them, those of DaemonSets'),
      requests: resources,
      allocatable: resources,
    }),
  ),
  madeBy: optional(entrySchema),
  history: list(entrySchema, 'what the journal says of it, oldest first'),
}

export const nodeSchema: JsonSchema = document<PrintedNode>(
  'NodeExplanation',
  'Why a node is still here: tenon explain node.',
  nodeFields,
)

export const nodeClaimSchema: JsonSchema = document<PrintedNode>(
  'NodeClaimExplanation',
  'Why a NodeClaim is still here: tenon explain nodeclaim.',
  nodeFields,
)

const hold = object<PodHold>({
  kind: words<PodHold['kind']>({
    deletionCost: '',
    doNotDisrupt: '',
    podDisruptionBudget: '',
    noController: '',
    localStorage: '',
    gracePeriod: '',
    daemon: '',
    resize: 'its resize in place waits, or cannot be made',
  }),
  message: text(),
  blocks: truth('whether it keeps the node from being disrupted now'),
  until: optional(time('when it ends by itself')),
  name: optional(text('of a PodDisruptionBudget, as namespace/name')),
  disruptionsAllowed: optional(count('of a PodDisruptionBudget; absent while nobody has counted')),
})

const pending = object<PendingExplanation>({
  case: words<PendingExplanation['case']>({
    waits: 'it finds no place',
    deferred: 'its node is not to be launched yet',
    newNode: 'it gets a new node',
    node: 'it goes to a node that is there or on its way',
    leftOut: 'nothing is decided about it',
    undecided: 'time was up',
  }),
  code: text('of the reason for the pod as a whole'),
  nextTryAt: optional(time('if nothing changes before; absent when that is not known')),
  summary: text(),
  nodePools: list(
    object<PoolAnswer>({
      nodePool: text(),
      weight: count(),
      code: text("the engine's reason, or what keeps the NodePool from launching"),
      message: text(),
    }),
    'in order of weight',
  ),
  nodes: optional(
    object<NodesAnswer>({
      fitting: list(text(), 'names of the nodes that would take it'),
      message: optional(text('in the words of kube-scheduler')),
    }),
  ),
  misses: list(missSchema, 'single changes that would let it run, each decided again; cheapest first'),
  untried: count('changes that were not tried, as time was up'),
})

interface PodMetadata {
  readonly name: string
  readonly namespace: string
}

export const podSchema: JsonSchema = document<PrintedPod>(
  'PodExplanation',
  'Why a pod waits, or why it is where it is: tenon explain pod.',
  {
    namespace: text(),
    name: text(),
    asOf,
    case: words<PrintedPod['case']>({
      waits: '',
      planned: 'a node that is there, or comes, is meant for it',
      running: '',
      ended: '',
      other: 'it needs no node of ours',
    }),
    code: text(),
    summary: text('what is the case, in one sentence'),
    place: optional(
      object<PodPlace>({
        node: optional(text()),
        nodeClaim: optional(text()),
        plannedAt: optional(time()),
        phase: optional(phase),
      }),
    ),
    decision: optional(entrySchema),
    holds: optional(list(hold, 'what it means for its node')),
    pending: optional(pending),
  },
  object<PodMetadata>({ name: text(), namespace: text() }),
)

export const requestSchema: JsonSchema = document<RequestExplanation>(
  'ProvisioningRequestExplanation',
  'Why a ProvisioningRequest has no room, or until when it keeps some: tenon explain provisioningrequest.',
  {
    namespace: text(),
    name: text(),
    asOf,
    case: words<RequestExplanation['case']>({
      sought: 'it has no room yet',
      booked: 'room is kept for its pods',
      ended: '',
      left: 'nobody here serves it',
    }),
    code: text(),
    summary: text('what is the case, in one sentence'),
    provisioningClassName: text(),
    pods: count('that it is for'),
    placed: optional(count('of them that would find room now')),
    blocked: optional(
      list(
        object<BlockedPods>({
          podTemplate: text(),
          pods: count('that find no room'),
          of: count('that there are to be'),
          pending,
        }),
        'the PodTemplates of which not all pods find room',
      ),
    ),
    until: optional(time('until when room is kept')),
    bound: optional(count('pods made for it that have a node')),
  },
  object<PodMetadata>({ name: text(), namespace: text() }),
)

export const podGroupSchema: JsonSchema = document<PodGroupExplanation>(
  'PodGroupExplanation',
  'Why the pods of a PodGroup wait, all together: tenon explain podgroup.',
  {
    namespace: text(),
    name: text(),
    resource: text('podgroups.GROUP: three kinds are called PodGroup'),
    asOf,
    case: words<PodGroupExplanation['case']>({
      short: 'it has fewer pods than must run together',
      waits: 'its pods find no place as a whole',
      launches: 'the next decision has a place for it',
      planned: 'its nodes are there, or on their way',
      runs: 'enough of its pods have a node',
      other: 'nothing is decided about it',
    }),
    code: text(),
    summary: text('what is the case, in one sentence'),
    minCount: count('pods that must run together; 0 when they run one by one'),
    pods: object<GroupPods>({
      bound: count('those with a node'),
      planned: count('without one, and planned for one'),
      waiting: count('without either'),
      gated: count('of these, behind scheduling gates'),
    }),
    topologyKey: optional(text('label of nodes of which all pods get one value')),
    nodeClaims: list(
      object<GroupClaim>({ name: text(), phase: optional(phase) }),
      'launched for it, and held together until it runs',
    ),
    member: optional(text('the pod, as namespace/name, that finds no place beside the others')),
    pending: optional(pending),
  },
  object<PodMetadata>({ name: text(), namespace: text() }),
)

export const workloadSchema: JsonSchema = document<WorkloadExplanation>(
  'WorkloadExplanation',
  'The pods of a workload, where one more would run, and its price: tenon explain deployment.',
  {
    namespace: text(),
    name: text(),
    workload: text('its kind, such as Deployment'),
    asOf,
    summary: text('what is the case, in one sentence'),
    pods: object<WorkloadPods>({
      onNodes: count('those with a node'),
      planned: count('without one, and planned for one'),
      waiting: count('without either'),
    }),
    waiting: list(
      object<WaitingGroup>({
        code: text('of the reason'),
        pods: count(),
        summary: text(),
        example: text('name of one of them'),
      }),
      'pods without a node, by reason',
    ),
    oneMore: optional(text('what the next decision would do with one more pod')),
    pricePerHour: optional(decimal('of what its pods request; absent when a price is not known')),
    currency: optional(text()),
  },
  object<PodMetadata>({ name: text(), namespace: text() }),
)

/** Fields of a budget, which simulations contain too. */
export const budgetFields: Fields<PoolBudget> = {
  reason: words<DisruptionReason>({ Empty: '', Drifted: '', Underutilized: '' }),
  allowed: count('nodes that may be disrupted at the same time now'),
  disrupting: count(),
  total: count('nodes of the NodePool'),
  timeZone: optional(text('of the schedules; UTC if absent')),
  next: list(
    object<PoolBudget['next'][number]>({ from: time(), until: optional(time()), allowed: count() }),
    'the next three changes',
  ),
}

export const nodePoolSchema: JsonSchema = document<NodePoolExplanation>(
  'NodePoolExplanation',
  'What a NodePool can do now, and what it waits for: tenon explain nodepool.',
  {
    name: text(),
    asOf,
    summary: text('what is the case, in one sentence'),
    isReady: truth(),
    waitsFor: optional(
      object<NonNullable<NodePoolExplanation['waitsFor']>>({ code: text(), message: text() }),
    ),
    nodes: count(),
    types: object<NodePoolExplanation['types']>({
      offered: count('by the provider'),
      left: count('after the requirements'),
      problem: optional(text('why they are not known')),
    }),
    offerings: object<NodePoolExplanation['offerings']>({
      left: count('after the requirements'),
      available: count('of them, those to be had now'),
      short: list(
        object<NodePoolExplanation['offerings']['short'][number]>({
          instanceType: text(),
          zone: text(),
          capacityType: text(),
          because: text(),
          until: optional(time('of the next try')),
        }),
      ),
    }),
    limits: list(
      object<NodePoolExplanation['limits'][number]>({
        resource: text(),
        limit: text(),
        used: text(),
        reserved: text('for NodeClaims on their way'),
      }),
    ),
    budgets: list(object<PoolBudget>(budgetFields)),
    schedules: list(
      object<PoolSchedule>({
        schedule: text(),
        duration: text(),
        nodes: text('as in the budget'),
        reasons: optional(list(words<DisruptionReason>({ Empty: '', Drifted: '', Underutilized: '' }))),
        timeZone: optional(text('UTC if absent')),
        isActive: truth('whether the budget holds now'),
        next: list(
          object<PoolSchedule['next'][number]>({ at: time(), isActive: truth() }),
          'the next three changes',
        ),
      }),
      'budgets with a schedule',
    ),
    drift: object<NodePoolExplanation['drift']>({
      updated: count(),
      total: count(),
      fields: list(text()),
    }),
    zoneBalance: optional(
      object<NonNullable<NodePoolExplanation['zoneBalance']>>({
        nodes: count('outside the cheapest zone, for the sake of balance'),
        pricePerHour: decimal('what they cost more than in the cheapest zone'),
      }),
    ),
    ignored: optional(
      list(
        object<NonNullable<NodePoolExplanation['ignored']>[number]>({
          field: text(),
          message: text(),
          fix: optional(text()),
        }),
        'annotations that cannot be read',
      ),
    ),
    refused: list(
      object<NodePoolExplanation['refused'][number]>({
        code: text(),
        pods: count(),
        message: text('what it says to the first of them'),
      }),
    ),
  },
)
