import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  annotations,
  type Condition,
  type KubeObject,
  labels,
  type Node,
  type NodeClaim,
  type Pod,
  type PodDisruptionBudget,
} from '@tenon/api'
import type { JournalEntry } from '@tenon/operator'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'
import { aNode, aPending, aPool, aSnapshot, aType } from '../testing/clusters.test-support.ts'
import { gathered } from './gathered.ts'
import { explainNode, type NodeExplanation } from './node.ts'
import { explainNodePool } from './node-pool.ts'
import { PodExplainer, type PodExplanation } from './pod.ts'
import { groupsText, nodePoolText, nodeText, podText } from './text.ts'

const takenAtMs = Date.parse('2026-11-26T12:00:00Z')
const ago = (seconds: number): string => new Date(takenAtMs - seconds * 1000).toISOString()
const signal = AbortSignal.timeout(60_000)

type Step = 'Launched' | 'Registered' | 'Initialized'

/** A claim of NodePool `web` that took these steps so many seconds ago. */
function aClaim(name: string, steps: Partial<Record<Step, number>>, createdAgo = 7200): NodeClaim {
  const condition = ([type, seconds]: readonly [string, number]): Condition => ({
    type,
    status: 'True',
    reason: type,
    message: '',
    lastTransitionTime: ago(seconds),
  })
  const isNode = steps.Registered !== undefined
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: {
      name,
      uid: `claim-${name}`,
      creationTimestamp: ago(createdAgo),
      labels: {
        [labels.nodePool]: 'web',
        [labels.instanceType]: 'large',
        [labels.zone]: 'zone-a',
        [labels.capacityType]: 'on-demand',
      },
    },
    spec: { nodeClassRef: { group: 'my.cloud', kind: 'MyNodeClass', name: 'default' }, requirements: [] },
    status: {
      ...(steps.Launched !== undefined && { providerID: `my://node-${name}` }),
      ...(isNode && { nodeName: `node-${name}` }),
      conditions: Object.entries(steps).map(condition),
    },
  }
}

/** The Node of a claim. */
function nodeOf(claim: NodeClaim, cpu: string): Node {
  const isReady = claim.status?.conditions?.some(({ type }) => type === 'Initialized') === true
  return aNode(`node-${claim.metadata.name}`, cpu, {
    ...claim.metadata.labels,
    [labels.registered]: 'true',
    ...(isReady && { [labels.initialized]: 'true' }),
  })
}

function running(name: string, node: string, more: Partial<Pod['metadata']> = {}, cpu = '100m'): Pod {
  const { metadata, spec } = aPending(name, { cpu }, { nodeName: node }, name)
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...metadata, ...more },
    spec,
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  }
}

function aBudget(name: string, app: string, disruptionsAllowed: number): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default' },
    spec: { minAvailable: 1, selector: { matchLabels: { app } } },
    status: { disruptionsAllowed },
  }
}

const types = [aType('small', 1), aType('large', 4)]
const initialized = { Launched: 7000, Registered: 6900, Initialized: 6890 }

async function studied(
  t: TestContext,
  objects: readonly KubeObject[],
  more: Partial<Snapshot> = {},
): Promise<Study> {
  const study = await Study.open({ ...aSnapshot(objects, types), ...more })
  t.after(() => study.close())
  return study
}

/** @param name of a NodeClaim, or else of a Node. */
async function nodeIn(study: Study, name: string): Promise<NodeExplanation> {
  const found =
    (await explainNode(study, 'nodeClaim', name, signal)) ?? (await explainNode(study, 'node', name, signal))
  assert.ok(found !== undefined)
  return found
}

async function podIn(study: Study, name: string): Promise<PodExplanation> {
  const pod = study.operator.caches.pods.get({ namespace: 'default', name })
  assert.ok(pod !== undefined)
  return await new PodExplainer(study).explain(pod, { missesMs: 0 })
}

test('EXP-5 a planned pod is told of its claim, its phase, and how long that usually takes', async (t) => {
  const old = ['a', 'b', 'c'].map((name, at) =>
    aClaim(name, { Launched: 7190, Registered: 7190 - 60 * (at + 1), Initialized: 6000 }),
  )
  const coming = aClaim('new', { Launched: 30 }, 40)
  const pod = aPending('p', { cpu: '1' })
  const study = await studied(t, [aPool('web'), ...old, coming, pod], {
    memory: {
      ...aSnapshot([], []).memory,
      plans: [
        {
          uid: 'pod-p',
          target: { kind: 'claim', name: 'new' },
          madeMs: takenAtMs - 40_000,
          steering: 'told',
        },
      ],
    },
  })
  const { case: what, code, summary, place } = await podIn(study, 'p')
  assert.deepEqual([what, code], ['planned', 'waitsForRegistered'])
  assert.equal(summary, 'It is planned for NodeClaim new, which is not Registered yet')
  assert.equal(place?.phase?.medianSeconds, 120)
  assert.equal(place?.phase?.isOverdue, false)
  assert.match(place?.phase?.until ?? '', /^2026-11-26T12:14:/)
})

test('EXP-5 a claim past its time-out says what happens next', async (t) => {
  const late = aClaim('late', { Launched: 3000 }, 3100)
  const study = await studied(t, [aPool('web'), late])
  const { phase } = await nodeIn(study, 'late')
  assert.equal(phase?.waitsFor, 'Registered')
  assert.equal(phase?.isOverdue, true)
  assert.match(phase?.otherwise ?? '', /^Then the NodeClaim is deleted: its pods are decided about again/)
})

test('EXP-6 a node kept by do-not-disrupt, a PDB and a budget is told of all three, with when it opens', async (t) => {
  const claim = aClaim('a', initialized)
  const budgets = [{ nodes: '0', schedule: '0 9 * * *', duration: '8h' }, { nodes: '1' }]
  const study = await studied(t, [
    aPool('web', { disruption: { consolidateAfter: '0s', budgets } }),
    claim,
    nodeOf(claim, '4'),
    running('kept', 'node-a', { annotations: { [annotations.doNotDisrupt]: 'true' } }),
    running('guarded', 'node-a'),
    aBudget('guard', 'guarded', 0),
  ])
  const explanation = await nodeIn(study, 'node-a')
  assert.deepEqual(
    explanation.obstacles.slice(0, 2).map(({ cause }) => cause),
    ['pod', 'podDisruptionBudget'],
  )
  const budget = explanation.obstacles.find(({ cause }) => cause === 'budget')
  assert.equal(budget?.until, '2026-11-26T17:00:00Z')
  const text = nodeText(explanation).join('\n')
  assert.match(text, /^node\/node-a: It stays: A pod is annotated with .*Pod=default\/kept/)
  assert.match(text, /✗ podDisruptionBudget: A PDB prevents pod evictions \(PDB=default\/guard\)/)
  assert.match(text, /✗ budget: .*\(until 2026-11-26T17:00:00Z\)/)
  assert.match(text, /Facts of 2026-11-26T12:00:00Z, from the controller test/)
})

test('a node that a smaller one could replace says what that saves, without a controller too', async (t) => {
  const claim = aClaim('a', initialized)
  const consolidatable: Condition = {
    type: 'Consolidatable',
    status: 'True',
    reason: 'Consolidatable',
    message: '',
    lastTransitionTime: ago(3600),
  }
  const quiet = {
    ...claim,
    status: { ...claim.status, conditions: [...(claim.status?.conditions ?? []), consolidatable] },
  }
  const objects = [aPool('web'), quiet, nodeOf(claim, '4')]
  const light = await nodeIn(await studied(t, [...objects, running('p', 'node-a', {}, '500m')]), 'a')
  assert.equal(light.obstacles[0]?.cause, 'possible')
  assert.deepEqual(light.saving?.replacements, [
    { nodePool: 'web', instanceType: 'small', pricePerHour: 0.05 },
  ])
  assert.ok(Math.abs((light.saving?.saves ?? 0) - 0.15) < 1e-9)
  assert.equal(light.pricePerHour, 0.2)
  const heavy = await nodeIn(await studied(t, [...objects, running('p', 'node-a', {}, '3')]), 'a')
  assert.equal(heavy.obstacles[0]?.cause, 'price')
  assert.equal(heavy.saving?.saves, 0)
  assert.match(nodeText(heavy).join('\n'), /A replacement \(large\) would cost the same; it has to cost less/)
})

test('EXP-7 a node that is gone is explained from the journal', async (t) => {
  const entry = (id: string, more: Partial<JournalEntry>): JournalEntry => ({
    id,
    at: '2026-11-26T11:00:00Z',
    kind: 'launch',
    reason: 'Provisioned',
    message: 'NodeClaim old was created for 2 pods',
    nodeClaims: ['old'],
    nodes: [],
    ...more,
  })
  const journal = [
    entry('1', { nodePool: 'web', pods: { count: 2, names: ['default/x'] } }),
    entry('2', {
      kind: 'registered',
      reason: 'Registered',
      message: 'Node n joined and was registered',
      nodes: ['n'],
    }),
    entry('3', {
      at: '2026-11-26T11:30:00Z',
      kind: 'move',
      reason: 'Underutilized',
      message: 'replace: [n] -> [1 replacement]',
      nodes: ['n'],
      replacements: ['next'],
      pricePerHour: { before: 0.2, after: 0.05 },
      currency: 'EUR',
    }),
  ]
  const study = await studied(t, [aPool('web')], { journal })
  const gone = await nodeIn(study, 'n')
  assert.equal(gone.case, 'gone')
  assert.equal(gone.nodeClaim, 'old')
  assert.equal(
    gone.summary,
    'It is gone: Underutilized at 2026-11-26T11:30:00Z (replace: [n] -> [1 replacement]); NodeClaim next came in its place, which saves 0.1500 EUR per hour',
  )
  assert.equal(gone.madeBy?.id, '1')
  assert.match(
    nodeText(gone).join('\n'),
    /move Underutilized: .* \(0\.2000 per hour -> 0\.0500 EUR per hour\)/,
  )
  assert.equal(await explainNode(study, 'node', 'nobody', signal), undefined)
})

test('a running pod is told what it means for its node', async (t) => {
  const claim = aClaim('a', initialized)
  const pod = running('p', 'node-a', { annotations: { [annotations.doNotDisrupt]: '2h' } })
  const started: Pod = { ...pod, status: { ...pod.status, startTime: ago(3600) } }
  const bare = running('bare', 'node-a', { ownerReferences: [] })
  const study = await studied(t, [
    aPool('web'),
    claim,
    nodeOf(claim, '4'),
    started,
    bare,
    aBudget('guard', 'p', 1),
  ])
  const { summary, holds = [] } = await podIn(study, 'p')
  assert.match(summary, /^It is on node node-a, .*it keeps the node from going \(doNotDisrupt\)$/)
  assert.deepEqual(
    holds.map(({ kind, blocks, until, disruptionsAllowed }) => [kind, blocks, until, disruptionsAllowed]),
    [
      ['doNotDisrupt', true, '2026-11-26T13:00:00Z', undefined],
      ['podDisruptionBudget', false, undefined, 1],
    ],
  )
  const { holds: ofBare = [] } = await podIn(study, 'bare')
  assert.deepEqual(
    ofBare.map(({ kind }) => kind),
    ['noController'],
  )
})

test('WNT-36 a running pod is told that its cost of deletion is of Tenon', async (t) => {
  const claim = aClaim('a', initialized)
  const costing = (name: string, time: string) =>
    running(name, 'node-a', {
      annotations: {
        'controller.kubernetes.io/pod-deletion-cost': '-300',
        'tenon.sh/pod-deletion-cost': `-300 ${time}`,
      },
    })
  const pods = [costing('own', '2026-11-26T11:00:00Z'), costing('foreign', 'yesterday')]
  const study = await studied(t, [aPool('web'), claim, nodeOf(claim, '4'), ...pods])
  const { holds = [] } = await podIn(study, 'own')
  const [message = ''] = holds.flatMap(({ kind, message: text }) => (kind === 'deletionCost' ? [text] : []))
  assert.match(message, /above -300, since 2026-11-26T11:00:00/)
  const { holds: others = [] } = await podIn(study, 'foreign')
  assert.equal(
    others.some(({ kind }) => kind === 'deletionCost'),
    false,
  )
})

test('ASK-29 VER-41 a running pod is told that its resize waits, and its node counts the larger amount', async (t) => {
  const claim = aClaim('a', initialized)
  const resized = (name: string, reason: string): Pod => {
    const pod = running(name, 'node-a', {}, '3')
    const containerStatuses = [
      { name: 'app', resources: { requests: { cpu: '1' } }, allocatedResources: { cpu: '1' } },
    ]
    const conditions = [{ type: 'PodResizePending', status: 'True' as const, reason }]
    return { ...pod, status: { ...pod.status, conditions, containerStatuses } }
  }
  const objects = [resized('later', 'Deferred'), resized('never', 'Infeasible')]
  const study = await studied(t, [aPool('web'), claim, nodeOf(claim, '4'), ...objects])
  for (const [name, words] of [
    ['later', /^Its resize in place is deferred: node node-a has no room .*; change the requests/],
    ['never', /^Its resize in place is infeasible: node node-a is too small .*; change the requests/],
  ] as const) {
    const { case: of, holds = [] } = await podIn(study, name)
    assert.equal(of, 'running')
    const found = holds.find(({ kind }) => kind === 'resize')
    assert.match(found?.message ?? '', words)
    assert.equal(found?.blocks, false)
  }
  assert.equal((await nodeIn(study, 'a')).holds?.requests['cpu'], '4', 'three to come, and one that is')
})

test('EXP-4 two hundred pods of three Deployments that wait for one reason are one entry', async (t) => {
  const pods = Array.from({ length: 200 }, (_, at) => {
    const app = `app-${at % 3}`
    const pod = aPending(`${app}-${at}`, { cpu: String(8 + (at % 5)) }, {}, app)
    return { ...pod, metadata: { ...pod.metadata, labels: { app, 'pod-template-hash': '7d9f' } } }
  })
  const odd = aPending('odd', { cpu: '1' }, { nodeSelector: { team: 'red' } })
  const study = await studied(t, [aPool('web'), ...pods, odd])
  const explainer = new PodExplainer(study)
  const groups = gathered(await explainer.explained(explainer.waiting()))
  assert.deepEqual(
    groups.map((group) => group.pods),
    [200, 1],
  )
  assert.equal(groups[0]?.workloads.length, 3)
  const [first] = groupsText(groups)
  assert.match(first ?? '', /^200 pods of 3 Deployments: No NodePool can launch a node for it/)
})

test('a NodePool says what it launches, its limits, budgets with their windows, drift and refusals', async (t) => {
  const drifted = aClaim('a', initialized)
  const withDrift: NodeClaim = {
    ...drifted,
    status: {
      ...drifted.status,
      conditions: [
        ...(drifted.status?.conditions ?? []),
        {
          type: 'Drifted',
          status: 'True',
          reason: 'NodePoolDrifted',
          message: '',
          lastTransitionTime: ago(60),
        },
      ],
    },
  }
  const budgets = [{ nodes: '0', schedule: '0 9 * * *', duration: '8h' }, { nodes: '1' }]
  const pool = aPool(
    'web',
    { limits: { cpu: '10' }, disruption: { consolidateAfter: '0s', budgets } },
    { taints: [{ key: 'team', value: 'web', effect: 'NoSchedule' }] },
  )
  const study = await studied(t, [pool, withDrift, nodeOf(drifted, '2'), aPending('p', { cpu: '3' })])
  const found = await explainNodePool(study, 'web', signal, await study.decide())
  assert.ok(found !== undefined)
  assert.deepEqual(found.limits, [{ resource: 'cpu', limit: '10', used: '2', reserved: '0' }])
  assert.deepEqual(found.types, { offered: 2, left: 2 })
  assert.deepEqual(found.drift, { updated: 0, total: 1, fields: ['spec.template.spec.taints'] })
  assert.deepEqual(
    found.budgets
      .find(({ reason }) => reason === 'Drifted')
      ?.next.map(({ from, allowed }) => [from, allowed]),
    [
      ['2026-11-26T17:00:00Z', 1],
      ['2026-11-27T09:00:00Z', 0],
      ['2026-11-27T17:00:00Z', 1],
    ],
  )
  assert.deepEqual(
    found.refused.map(({ code, pods }) => [code, pods]),
    [['untoleratedTaints', 1]],
  )
  assert.match(nodePoolText(found).join('\n'), /UTC, without daylight saving time/)
  assert.match(
    nodePoolText(found).join('\n'),
    /Schedule "0 9 .*" of UTC for 8h, nodes 0: holds now, ends 2026-11-26T17.*, begins 2026-11-27T09.*, ends /,
  )
  assert.equal(await explainNodePool(study, 'nobody', signal), undefined)
})

test('WNT-28 schedules of a NodePool with a time zone are listed by its clocks', async (t) => {
  const budgets = [{ nodes: '0', schedule: '30 2 * * 0', duration: '2h' }]
  const pool = aPool('web', { disruption: { consolidateAfter: '0s', budgets } })
  const zone = { 'tenon.sh/time-zone': 'Europe/Zurich' }
  const study = await studied(t, [{ ...pool, metadata: { ...pool.metadata, annotations: zone } }])
  const found = await explainNodePool(study, 'web', signal)
  const [schedule] = found?.schedules ?? []
  assert.equal(schedule?.timeZone, 'Europe/Zurich')
  assert.deepEqual(
    schedule.next.map(({ at, isActive }) => [at, isActive]),
    [
      ['2026-11-29T01:30:00Z', true],
      ['2026-11-29T03:30:00Z', false],
      ['2026-12-06T01:30:00Z', true],
    ],
  )
})

test('a pod that waits for something else than a node says for what', async (t) => {
  const gated = aPending('gated', { cpu: '1' }, { schedulingGates: [{ name: 'quota' }] })
  const study = await studied(t, [aPool('web'), gated])
  assert.match((await podIn(study, 'gated')).summary, /scheduling gates are removed \(quota\)/)
  assert.match(podText(await podIn(study, 'gated')).at(-1) ?? '', /^Facts of 2026-11-26T12:00:00Z/)
})

test('a Node that is called like the NodeClaim of another one is told apart from it', async (t) => {
  const claim = aClaim('twin', { Launched: 600, Registered: 600, Initialized: 600 })
  const study = await studied(t, [aPool('web'), claim, nodeOf(claim, '4'), aNode('twin', '1')])
  const node = await explainNode(study, 'node', 'twin', signal)
  assert.deepEqual([node?.node, node?.nodeClaim, node?.case], ['twin', undefined, 'unmanaged'])
  const other = await explainNode(study, 'nodeClaim', 'twin', signal)
  assert.equal(other?.nodeClaim, 'twin')
  assert.notEqual(other.node, 'twin')
  assert.notEqual(other.case, 'unmanaged')
})
