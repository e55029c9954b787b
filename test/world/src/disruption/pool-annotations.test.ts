/** What annotations of NodePools change about disruption, and what conditions tell of it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, conditionOf, karpenterKinds, kinds, labels, type ResourceType } from '@tenon/api'
import { defaultSettings } from '@tenon/operator/objects'
import { rfc3339 } from '@tenon/runtime'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import {
  LoggedErrors,
  cpu,
  left,
  mediumLabels,
  openDisruption,
  setBudget,
  setDrifted,
  tainted,
} from './disruption-stage.test-support.ts'

function annotate(stage: Stage, values: Readonly<Record<string, string | null>>): void {
  const named = Object.fromEntries(Object.entries(values).map(([key, value]) => [`tenon.sh/${key}`, value]))
  stage.patch(karpenterKinds.nodePool, 'default', { metadata: { annotations: named } })
}

const poolCondition = (stage: Stage, type: string) => {
  const pool = stage.poolNow()
  return pool && conditionOf(pool, type)
}

async function nodeIn(stage: Stage, name: string, zone: string): Promise<void> {
  await stage.ready(name, {}, { labels: { ...mediumLabels, [labels.zone]: zone } })
  await stage.pod(`pod-${name}`, `node-${name}`, cpu('3'))
}

test('WNT-26 a soft expired node stays with a protected pod until the deadline, and Drifted says so', async (t) => {
  const stage = await openDisruption(t, { idle: true })
  annotate(stage, { expiration: 'soft', 'expiration-deadline': '20m' })
  await stage.start()
  await stage.ready('a', { expireAfter: '10m' })
  await stage.pod('safe', 'node-a', { annotations: { [annotations.doNotDisrupt]: 'true' } })
  await stage.pass(11 * minutes)
  const drifted = stage.condition('a', 'Drifted')
  assert.equal(drifted?.reason, 'Expired')
  assert.match(drifted.message, /^It expired at .* do-not-disrupt allow; it is deleted by force at /)
  await stage.pass(10 * minutes)
  assert.deepEqual(left(stage), ['a'])
  assert.deepEqual(tainted(stage), [])
  await stage.pass(10 * minutes)
  assert.deepEqual(left(stage), [])
})

test('WNT-25 nodes that expire softly together are replaced one by one within the budget', async (t) => {
  const stage = await openDisruption(t, { idle: true })
  annotate(stage, { expiration: 'soft' })
  setBudget(stage, '1')
  await stage.start()
  for (const name of ['a', 'b', 'c']) {
    await stage.ready(name, { expireAfter: '10m' })
    await stage.pod(`pod-${name}`, `node-${name}`, cpu('3'))
  }
  await stage.pass(11 * minutes)
  for (const name of ['a', 'b', 'c']) assert.equal(stage.state(name, 'Drifted'), 'True/Expired')
  assert.equal(tainted(stage).length, 1)
  assert.equal(left(stage).filter((name) => ['a', 'b', 'c'].includes(name)).length, 3)
})

test('WNT-35 with sequential zones, nodes of one zone go at a time, over a restart too', async (t) => {
  const stage = await openDisruption(t, { idle: true })
  annotate(stage, { 'disrupt-zones': 'sequential' })
  await stage.start()
  for (const [name, zone] of [
    ['a1', 'zone-a'],
    ['b1', 'zone-b'],
    ['a2', 'zone-a'],
    ['b2', 'zone-b'],
  ] as const)
    await nodeIn(stage, name, zone)
  setDrifted(stage, 'a1', 'b1', 'a2', 'b2')
  await stage.pass(6 * minutes)
  const first = tainted(stage)
  assert.equal(first.length, 2)
  assert.equal(new Set(first.map((name) => name.charAt(0))).size, 1)
  await stage.restart()
  for (let passed = 0; passed < 3; passed++) {
    await stage.pass(minutes)
    const zones = new Set([...first, ...tainted(stage)].map((name) => name.charAt(0)))
    assert.equal(zones.size, 1, 'the replacements of the first zone are not initialized yet')
  }
  const event = stage
    .events('DisruptionBlocked')
    .find(({ message }) => message.includes('one zone at a time'))
  assert.match(event?.message ?? '', /annotation tenon.sh\/disrupt-zones\), now in zone-/)
})

test('WNT-40 RolloutComplete counts updated nodes, names the budget that blocks them, and ends', async (t) => {
  const stage = await openDisruption(t, { disruption: { budgets: [{ nodes: '0' }] } })
  for (const name of ['a', 'b']) {
    await stage.ready(name)
    await stage.pod(`pod-${name}`, `node-${name}`, { labels: { app: name } })
  }
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'web', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'a' } }, minAvailable: 1 },
    status: { disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1, expectedPods: 1 },
  })
  await stage.pass(10 * seconds)
  assert.equal(poolCondition(stage, 'RolloutComplete')?.status, 'True')
  setDrifted(stage, 'a', 'b')
  await stage.pass(7 * minutes)
  const outdated = poolCondition(stage, 'RolloutComplete')
  assert.equal(outdated?.status, 'False')
  assert.equal(outdated.message, '0 of 2 nodes updated; 1 blocked by PodDisruptionBudget default/web')
  assert.equal(stage.poolNow()?.metadata.annotations?.['tenon.sh/nodes-updated'], '0/2')
  assert.equal(poolCondition(stage, 'Ready')?.status, 'True')
  setDrifted(stage)
  await stage.pass(7 * minutes)
  assert.equal(poolCondition(stage, 'RolloutComplete')?.status, 'True')
  assert.equal(stage.poolNow()?.metadata.annotations?.['tenon.sh/nodes-updated'], '2/2')
})

test('WNT-40 in compatibility mode there is no such condition', async (t) => {
  const stage = await openDisruption(t, { settings: { compatibility: 'karpenter' } })
  await stage.pass(minutes)
  assert.equal(poolCondition(stage, 'RolloutComplete'), undefined)
})

test('WNT-41 replicas that a feature gate makes ineffective are named, until the gate is on', async (t) => {
  const stage = await openDisruption(t, { pool: { replicas: 2 } })
  await stage.pass(minutes)
  const condition = poolCondition(stage, 'FieldIgnored')
  assert.equal(condition?.status, 'True')
  assert.match(condition.message, /^spec.replicas has no effect .* --feature-gates StaticCapacity=true/)
})

test('WNT-41 the condition goes once the feature gate is on', async (t) => {
  const featureGates = { ...defaultSettings.featureGates, staticCapacity: true }
  const stage = await openDisruption(t, { pool: { replicas: 0 }, idle: true, settings: { featureGates } })
  const old = {
    type: 'FieldIgnored',
    status: 'True',
    reason: 'FeatureGateOff',
    message: '',
    lastTransitionTime: rfc3339(0),
  }
  stage.patch(karpenterKinds.nodePool, 'default', { status: { conditions: [old] } }, 'status')
  await stage.start()
  await stage.pass(minutes)
  assert.equal(poolCondition(stage, 'FieldIgnored'), undefined)
  assert.equal(poolCondition(stage, 'RolloutComplete')?.status, 'True')
})

test('WNT-41 a cluster without NodeOverlays is no error', async (t) => {
  const logger = new LoggedErrors()
  const stage = await openDisruption(t, { idle: true, logger })
  const crds: ResourceType = {
    group: 'apiextensions.k8s.io',
    version: 'v1',
    kind: 'CustomResourceDefinition',
    plural: 'customresourcedefinitions',
    namespaced: false,
  }
  stage.delete(crds, 'nodeoverlays.karpenter.sh')
  await stage.pass(seconds)
  await stage.start()
  await stage.pass(2 * minutes)
  assert.deepEqual(
    logger.lines.map(({ message }) => message),
    [],
  )
})
