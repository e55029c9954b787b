/** Every cause why a node stays or goes, each with a cluster that yields it (EXP-2, ask.md 2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  annotations,
  type Condition,
  type InstanceType,
  type KubeObject,
  labels,
  type Node,
  type NodeClaim,
  type NodePool,
  type Pod,
  type PodDisruptionBudget,
} from '@tenon/api'
import type { DecisionCause, NodeDecision } from '@tenon/operator'
import { replaceUnready } from '@tenon/provider'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'
import {
  aClaimedNode,
  aPending,
  aPool,
  aRunning,
  aSnapshot,
  aType,
} from '../testing/clusters.test-support.ts'
import { explainNode, type NodeExplanation } from './node.ts'
import { nodeText } from './text.ts'

/** A cluster with node `n1`, and what is said about it. */
interface Row {
  readonly objects: readonly KubeObject[]
  readonly types?: readonly InstanceType[]
  /** Whether feature gate NodeRepair is on. */
  readonly isRepairing?: boolean
  /** What only the controller knows: offline nothing is carried out, and no search is in progress. */
  readonly told?: Pick<NodeDecision, 'message' | 'until'>
  readonly summary: RegExp
  readonly until?: string
}

const types = [aType('small', 1), aType('large', 4)]
const [small, large] = types as [InstanceType, InstanceType]
const at = '2026-11-26T12:00:00Z'
const quietSince = '2026-11-26T11:00:00Z'
const consolidatable: Condition = {
  type: 'Consolidatable',
  status: 'True',
  reason: 'Consolidatable',
  message: '',
  lastTransitionTime: quietSince,
}

interface Edits {
  readonly claim?: (claim: NodeClaim) => NodeClaim
  readonly node?: (node: Node) => Node
}

/** Node `n1` of type `large`, at rest for an hour. */
function standing(pool: NodePool, edits: Edits = {}, type: InstanceType = large): readonly KubeObject[] {
  const [node, made] = aClaimedNode('n1', pool, type) as readonly [Node, NodeClaim]
  const claim: NodeClaim = {
    ...made,
    status: { ...made.status, conditions: [...(made.status?.conditions ?? []), consolidatable] },
  }
  return [pool, edits.node?.(node) ?? node, edits.claim?.(claim) ?? claim]
}

function running(name: string, cpu: string, more: Partial<Pod['metadata']> = {}): Pod {
  const pod = aRunning(aPending(name, { cpu, memory: '100Mi' }, {}, name), 'n1')
  return { ...pod, metadata: { ...pod.metadata, ...more } }
}

function startedAt(startTime: string, pod: Pod): Pod {
  return { ...pod, status: { ...pod.status, startTime } }
}

function annotated<T extends KubeObject>(object: T, key: string, value: string): T {
  return {
    ...object,
    metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, [key]: value } },
  }
}

const guard: PodDisruptionBudget = {
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'guard', namespace: 'default' },
  spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
  status: { disruptionsAllowed: 0 },
}

const budgets = [{ nodes: '0', schedule: '0 9 * * *', duration: '8h' }]

const rows: Readonly<Record<DecisionCause, Row>> = {
  node: {
    objects: [
      ...standing(aPool('blue'), {
        node: (node) => {
          const { [labels.initialized]: _, ...rest } = node.metadata.labels ?? {}
          return { ...node, metadata: { ...node.metadata, labels: rest } }
        },
        claim: (claim) => ({
          ...claim,
          status: {
            ...claim.status,
            conditions: (claim.status?.conditions ?? []).filter(({ type }) => type !== 'Initialized'),
          },
        }),
      }),
      running('web', '100m'),
    ],
    summary: /^It stays: The Node is not initialized$/,
  },
  annotation: {
    objects: [
      ...standing(aPool('blue'), { node: (node) => annotated(node, annotations.doNotDisrupt, 'true') }),
      running('web', '100m'),
    ],
    summary: /^It stays: Disruption is blocked by annotation \(karpenter\.sh\/do-not-disrupt=true\)$/,
  },
  nodePool: {
    objects: [
      ...standing(aPool('blue', {}, { requirements: [{ key: labels.hostname, operator: 'Exists' }] })),
      running('web', '100m'),
    ],
    summary:
      /^It stays: The NodePool is not valid \(NodePool=blue\): spec\.template\.spec\.requirements.*kubernetes\.io\/hostname/,
  },
  pod: {
    objects: [
      ...standing(aPool('blue')),
      startedAt(quietSince, running('web', '100m', { annotations: { [annotations.doNotDisrupt]: '2h' } })),
    ],
    summary: /^It stays: A pod is annotated with karpenter\.sh\/do-not-disrupt \(Pod=default\/web\)$/,
    until: '2026-11-26T13:00:00Z',
  },
  podDisruptionBudget: {
    objects: [...standing(aPool('blue')), guard, running('web', '100m')],
    summary: /^It stays: A PDB prevents pod evictions \(PDB=default\/guard\): it allows none now$/,
  },
  command: {
    objects: [...standing(aPool('blue')), running('web', '100m')],
    told: { message: 'It will be disrupted once its replacement is ready' },
    summary: /^It goes: It will be disrupted once its replacement is ready$/,
  },
  failedCommand: {
    objects: [...standing(aPool('blue')), running('web', '100m')],
    told: {
      message:
        'Pods of the same workload needed a new node when they were moved last; it is tried again in 15 min (Pod=default/web)',
      until: '2026-11-26T12:15:00Z',
    },
    summary: /^It stays: .*it is tried again in 15 min \(Pod=default\/web\)$/,
    until: '2026-11-26T12:15:00Z',
  },
  brake: {
    objects: [
      ...standing(
        annotated(
          aPool('blue'),
          'tenon.sh/paused',
          '{"until":"2026-11-26T14:00:00Z","reason":"incident 42"}',
        ),
      ),
      running('web', '100m'),
    ],
    summary: /^It stays: .*paused.*incident 42/i,
    until: '2026-11-26T14:00:00Z',
  },
  budget: {
    objects: [
      ...standing(aPool('blue', { disruption: { consolidateAfter: '0s', budgets } })),
      running('web', '100m'),
    ],
    summary:
      /^It stays: No budget is left for reason Underutilized \(NodePool=blue, allowed=0, disrupted=0\)$/,
    until: '2026-11-26T17:00:00Z',
  },
  policy: {
    objects: [
      ...standing(
        aPool('blue', { disruption: { consolidateAfter: '0s', consolidationPolicy: 'WhenEmpty' } }),
      ),
      running('web', '100m'),
    ],
    summary: /^It stays: Only empty nodes are consolidated \(NodePool=blue, consolidationPolicy=WhenEmpty\)$/,
  },
  repair: {
    objects: [
      ...standing(aPool('blue'), {
        node: (node) => ({
          ...annotated(node, 'tenon.sh/do-not-repair', '2026-11-26T15:00:00Z'),
          status: {
            ...node.status,
            conditions: [{ type: 'Ready', status: 'False', lastTransitionTime: quietSince }],
          },
        }),
      }),
      running('web', '100m'),
    ],
    isRepairing: true,
    summary:
      /^It is unhealthy \(Ready=False\) and is not repaired now: the Node is annotated with tenon\.sh\/do-not-repair until 2026-11-26T15:00:00Z$/,
    until: '2026-11-26T15:00:00Z',
  },
  pods: {
    objects: [...standing(aPool('blue', { limits: { nodes: '0' } })), running('web', '1')],
    summary: /^It stays: Not all pods would schedule, default\/web => .*limit on the number of nodes/,
  },
  price: {
    objects: [...standing(aPool('blue')), running('web', '3')],
    summary: /^It stays: Can't replace with a cheaper node$/,
  },
  score: {
    objects: [
      ...standing(
        aPool('blue', { disruption: { consolidateAfter: '0s', consolidationPolicy: 'Balanced' } }),
        {},
        aType('large', 4),
      ),
      ...Array.from({ length: 9 }, (_, n) => running(`web-${n}`, '100m')),
    ],
    types: [aType('small', 1, { price: 0.195 }), large],
    summary: /^It stays: Its savings are not worth the disruption \(consolidationPolicy=Balanced\)$/,
  },
  possible: {
    objects: standing(aPool('blue')),
    summary: /^It can be disrupted \(reason=Empty\)$/,
  },
  unknown: {
    objects: [...standing(aPool('blue')), running('web', '100m')],
    // A controller that has not looked yet is no answer: the node is looked at here.
    told: { message: 'The placement of its pods elsewhere has not been evaluated yet' },
    summary: /^It can be disrupted \(reason=Underutilized\)$/,
  },
}

async function explained(
  cause: DecisionCause,
  { isRepairing = false, objects, told, types: offered = types }: Row,
) {
  const decision: readonly NodeDecision[] =
    told === undefined ? [] : [{ node: 'n1', nodeClaim: 'claim-n1', nodePool: 'blue', cause, ...told, at }]
  const taken = aSnapshot(objects, offered)
  const { cloud, settings } = taken
  const snapshot: Snapshot = {
    ...taken,
    nodeDecisions: decision,
    cloud: { ...cloud, repairPolicies: replaceUnready },
    settings: { ...settings, featureGates: { ...settings.featureGates, nodeRepair: isRepairing } },
  }
  const study = await Study.open(snapshot)
  try {
    const found = await explainNode(study, 'node', 'n1', AbortSignal.timeout(60_000))
    assert.ok(found !== undefined)
    return found
  } finally {
    await study.close()
  }
}

function firstOf({ obstacles }: NodeExplanation) {
  const [first] = obstacles
  assert.ok(first !== undefined)
  return first
}

for (const [cause, row] of Object.entries(rows) as readonly (readonly [DecisionCause, Row])[])
  test(`EXP-2 cause ${cause} of a node comes with the rule, the object and the time`, async () => {
    const found = await explained(cause, row)
    assert.equal(firstOf(found).cause, cause === 'unknown' ? 'possible' : cause, found.summary)
    assert.match(found.summary, row.summary)
    assert.equal(firstOf(found).until, row.until)
    // People are told the same, with the node's name before and the time behind it.
    const [line = ''] = nodeText(found)
    const end = row.until === undefined ? '' : ` (until ${row.until})`
    assert.equal(line, `node/n1: ${found.summary}${end}`)
  })

test('EXP-2 the price that a node would have to beat comes with what a replacement saves', async () => {
  const { saving, pricePerHour } = await explained('price', rows.price)
  assert.equal(pricePerHour, large.offerings[0]?.pricePerHour)
  assert.deepEqual([saving?.saves, saving?.mustSave, saving?.isMore], [0, 0, true])
  const { saving: light } = await explained('possible', {
    ...rows.possible,
    objects: [...rows.possible.objects, running('web', '100m')],
  })
  assert.deepEqual(light?.replacements, [
    { nodePool: 'blue', instanceType: 'small', pricePerHour: small.offerings[0]?.pricePerHour },
  ])
})
