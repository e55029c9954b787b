/** Nodes that the scheduler refuses for a reason that decisions do not know (reports.md 1). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { conditionOf, karpenterKinds, labels, type Node, type NodePool, type Pod } from '@tenon/api'
import { aPool } from '../exoscale/manifests.test-support.ts'
import type { WorldOptions } from '../world.ts'
import { EvidenceStage, hours, minutes, seconds } from './evidence-stage.test-support.ts'

const small = { cpu: '1', memory: '1Gi' }
const reason = 'node(s) have no licence left for the pod'
/** Refuses pods that need a licence. */
const licences = {
  extraFilter: (pod: Pod) => (pod.metadata.labels?.['licence'] === 'needed' ? reason : undefined),
}
const apart = {
  podAntiAffinity: {
    requiredDuringSchedulingIgnoredDuringExecution: [
      { topologyKey: labels.hostname, labelSelector: { matchLabels: { port: 'taken' } } },
    ],
  },
}
const isInitialized = ({ metadata }: Node): boolean => metadata.labels?.[labels.initialized] === 'true'
const needed = { labels: { licence: 'needed' } }

async function aStage(
  t: TestContext,
  { pool, ...options }: Partial<WorldOptions> & { readonly pool?: Partial<NodePool['spec']> } = {},
): Promise<EvidenceStage> {
  const stage = await EvidenceStage.open(t, { cluster: { scheduler: licences }, ...options })
  stage.world.create(karpenterKinds.nodePool, aPool('standard', ['standard.medium', 'standard.large'], pool))
  return stage
}

test('RPT-4 a pod that a plugin of the scheduler refuses gets one node in an hour, and its reason is told', async (t) => {
  const stage = await aStage(t)
  stage.aPod('licensed', small, needed)
  await stage.start()
  await stage.pass(50 * minutes)
  assert.equal(stage.launched.size, 1)
  assert.equal(stage.world.claims().length, 0, 'nothing is kept for it')
  const [told] = stage.events('NodeRefused', 'Warning')
  assert.match(
    told ?? '',
    /^Pod\/licensed: Node .* the scheduler rejects the pod there; no other node of NodePool standard is launched/,
  )
  assert.ok(told?.includes(reason), told)
  assert.match(conditionOf(stage.pool('standard'), 'LaunchesServePods')?.message ?? '', /no licence left/)
  stage.aPod('other', small)
  await stage.pass(5 * minutes)
  assert.notEqual(stage.pod('other')?.spec.nodeName, undefined, 'pods that fit are served')
  assert.equal(stage.launched.size, 2)
})

test('RPT-4 the pause lasts when the pod is made anew, and when the operator starts anew', async (t) => {
  const stage = await aStage(t)
  stage.aPod('licensed', small, needed)
  await stage.start()
  await stage.pass(10 * minutes)
  assert.equal(stage.launched.size, 1)
  stage.remove('licensed')
  await stage.pass(minutes)
  stage.aPod('licensed', small, needed)
  await stage.pass(10 * minutes)
  await stage.restart()
  await stage.pass(20 * minutes)
  assert.equal(stage.launched.size, 1)
  await stage.pass(90 * minutes)
  assert.ok(
    stage.launched.size >= 2 && stage.launched.size <= 3,
    `${stage.launched.size} launches in two hours`,
  )
})

test('RPT-4 a restart while the refused node is there launches no second one', async (t) => {
  const stage = await aStage(t)
  stage.aPod('licensed', small, needed)
  await stage.start()
  await stage.until(() => stage.world.nodes().length === 1, 5 * minutes)
  await stage.pass(30 * seconds)
  await stage.restart()
  await stage.pass(hours - 10 * minutes)
  assert.equal(stage.launched.size, 1)
})

test('RPT-4 a pod that asks for something else is tried, and so is one whose NodePool was changed', async (t) => {
  const stage = await aStage(t)
  stage.aPod('licensed', small, needed)
  await stage.start()
  await stage.pass(10 * minutes)
  stage.aPod('other', { cpu: '1', memory: '2Gi' }, needed)
  await stage.pass(5 * minutes)
  assert.equal(stage.launched.size, 2)
  stage.change('standard', { spec: { weight: 10 } })
  await stage.pass(5 * minutes)
  const tried: number = stage.launched.size
  assert.ok([3, 4].includes(tried), 'one node for both, or one for each')
  await stage.pass(20 * minutes)
  assert.equal(stage.launched.size, tried)
})

test('RPT-4 once the reason has gone the pod runs, and the condition with it', async (t) => {
  let isOut = true
  const extraFilter = () => (isOut ? reason : undefined)
  const stage = await aStage(t, { cluster: { scheduler: { extraFilter } } })
  stage.aPod('licensed', small)
  await stage.start()
  await stage.pass(30 * minutes)
  assert.equal(stage.launched.size, 1)
  isOut = false
  await stage.pass(45 * minutes)
  assert.notEqual(stage.pod('licensed')?.spec.nodeName, undefined)
  assert.equal(stage.launched.size, 2)
  assert.equal(conditionOf(stage.pool('standard'), 'LaunchesServePods')?.status, 'True')
})

for (const [rule, more] of [
  ['a host port', { ports: [{ containerPort: 80, hostPort: 8080 }] }],
  ['a rule that keeps pods apart', { spec: { affinity: apart } }],
] as const)
  test(`RPT-4 a node that another pod took, which clashes by ${rule}, is no evidence`, async (t) => {
    let isOut = true
    const extraFilter = (pod: Pod) => (isOut ? licences.extraFilter(pod) : undefined)
    const stage = await aStage(t, { cluster: { scheduler: { extraFilter } } })
    stage.aPod(
      'licensed',
      { cpu: '3', memory: '6Gi' },
      { labels: { licence: 'needed', port: 'taken' }, ...more },
    )
    await stage.start()
    await stage.until(() => stage.world.nodes().some(isInitialized), 5 * minutes)
    stage.aPod('other', { cpu: '100m', memory: '100Mi' }, { labels: { port: 'taken' }, ...more })
    await stage.until(() => stage.pod('other')?.spec.nodeName !== undefined, minutes)
    isOut = false
    await stage.pass(10 * minutes)
    const pods = ['licensed', 'other'].map((name) => stage.pod(name)?.spec.nodeName)
    assert.equal(new Set(pods).size, 2)
    assert.ok(!pods.includes(undefined), String(pods))
    assert.deepEqual(stage.events('NodeRefused'), [])
  })

test('RPT-4 a pod that came when others had taken its node gets another one at once', async (t) => {
  const stage = await aStage(t)
  const ports = [{ containerPort: 80, hostPort: 8080 }]
  const come = () => stage.aPod('first', { cpu: '3', memory: '6Gi' }, { ports })
  come()
  await stage.start()
  await stage.until(() => stage.world.nodes().length === 1, 5 * minutes)
  stage.remove('first')
  stage.aPod('other', { cpu: '100m', memory: '100Mi' }, { ports })
  await stage.until(() => stage.pod('other')?.spec.nodeName !== undefined, 5 * minutes)
  await stage.pass(5 * minutes)
  come()
  await stage.until(() => stage.pod('first')?.spec.nodeName !== undefined, 5 * minutes)
  assert.equal(stage.launched.size, 2)
  assert.deepEqual(stage.events('NodeRefused'), [])
})

test('RPT-4 a pod that others keep out of the domain of its node gets a node in another one', async (t) => {
  const key = 'example.com/rack'
  const racks = ['r1', 'r2']
  let isOut = true
  const extraFilter = (pod: Pod) => (isOut ? licences.extraFilter(pod) : undefined)
  const stage = await EvidenceStage.open(t, { cluster: { scheduler: { extraFilter } } })
  const pool = aPool('standard', ['standard.medium', 'standard.large'], {
    disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: 'Never' },
  })
  const { template } = pool.spec
  const requirements = [...template.spec.requirements, { key, operator: 'In' as const, values: racks }]
  stage.world.create(karpenterKinds.nodePool, {
    ...pool,
    spec: { ...pool.spec, template: { ...template, spec: { ...template.spec, requirements } } },
  })
  for (const rack of racks)
    stage.aPod(`anchor-${rack}`, { cpu: '3', memory: '6Gi' }, { spec: { nodeSelector: { [key]: rack } } })
  await stage.start()
  await stage.until(() => stage.world.nodes().filter(isInitialized).length === racks.length, 5 * minutes)
  const [term] = apart.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution
  const affinity = {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [{ labelSelector: {}, ...term, topologyKey: key }],
    },
  }
  stage.aPod('licensed', { cpu: '3', memory: '6Gi' }, { labels: { licence: 'needed' }, spec: { affinity } })
  const meant = () =>
    stage.world
      .nodes()
      .find(({ metadata }) => !stage.world.pods().some(({ spec }) => spec.nodeName === metadata.name))
  await stage.until(() => meant() !== undefined, 5 * minutes)
  const rack = meant()?.metadata.labels?.[key] ?? ''
  const nodeName = stage.pod(`anchor-${rack}`)?.spec.nodeName ?? ''
  stage.aPod('other', { cpu: '100m', memory: '100Mi' }, { labels: { port: 'taken' }, spec: { nodeName } })
  isOut = false
  await stage.until(() => stage.pod('licensed')?.spec.nodeName !== undefined, 15 * minutes)
  assert.equal(stage.launched.size, 4)
})

test('RPT-10 a node on which a pod stays refused is replaced when it drifts', async (t) => {
  const stage = await aStage(t, {
    pool: {
      disruption: {
        consolidationPolicy: 'WhenEmpty',
        consolidateAfter: 'Never',
        budgets: [{ nodes: '100%' }],
      },
    },
  })
  stage.aPod('runs', small)
  await stage.start()
  await stage.until(() => stage.pod('runs')?.spec.nodeName !== undefined, 5 * minutes)
  stage.aPod('licensed', { cpu: '200m', memory: '100Mi' }, needed)
  await stage.pass(10 * minutes)
  const [first] = stage.world.claims()
  stage.change('standard', { spec: { template: { metadata: { labels: { edition: 'two' } } } } })
  await stage.pass(15 * minutes)
  assert.ok(!stage.world.claims().some(({ metadata }) => metadata.name === first?.metadata.name))
})
