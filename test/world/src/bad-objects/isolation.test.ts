/** A bad object blocks only itself, and is named. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { conditionOf, karpenterKinds, kinds, labels, type NodePool } from '@tenon/api'
import { metricsHandler, probesHandler, type Settings } from '@tenon/operator'
import { ProviderError } from '@tenon/provider'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import type { HttpHandler } from '@tenon/runtime'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import { aType, createPool, objectsWithEvent, waitingPod } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'

/** A stage with a pool `good`, and a pool `default` that would be preferred; nothing runs yet. */
async function open(
  t: TestContext,
  bad: Partial<NodePool['spec']> = {},
  settings: Partial<Settings> = {},
): Promise<Stage> {
  const stage = await Stage.open(t, { idle: true, pool: { weight: 100, ...bad }, settings })
  stage.cloud.instanceTypes = [aType('medium', 4)]
  createPool(stage, aKwokPool('good', { disruption: { consolidateAfter: 'Never' }, weight: 1 }))
  return stage
}

function template(spec: Partial<NodePool['spec']['template']['spec']>): Partial<NodePool['spec']> {
  const { template: usual } = aKwokPool().spec
  return { template: { ...usual, spec: { ...usual.spec, ...spec } } }
}

/** Names of the NodePools whose claims have an instance. */
function launchedPools(stage: Stage): readonly string[] {
  return stage.world
    .claims()
    .filter(({ status }) => (status?.providerID ?? '') !== '')
    .map(({ metadata }) => metadata.labels?.[labels.nodePool] ?? '')
}

async function ask(handler: HttpHandler, path: string): Promise<{ status: number; text: string }> {
  const request = { method: 'GET', path, headers: {} }
  const { status, body } = await handler(request, new AbortController().signal)
  let text = ''
  for await (const chunk of body) text += typeof chunk === 'string' ? chunk : new TextDecoder().decode(chunk)
  return { status, text }
}

test('an invalid NodePool leaves the others working', async (t) => {
  const key = `a/${'b'.repeat(64)}`
  const stage = await open(t, template({ startupTaints: [{ key, effect: 'NoSchedule' }] }))
  waitingPod(stage, 'pod')
  await stage.start()
  await stage.pass(15 * seconds)
  assert.equal(conditionOf(stage.poolNow() as NodePool, 'ValidationSucceeded')?.status, 'False')
  assert.deepEqual(launchedPools(stage), ['good'])
})

test('a NodePool whose NodeClass is missing leaves the others working', async (t) => {
  const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'gone' }
  const stage = await open(t, template({ nodeClassRef }))
  waitingPod(stage, 'pod')
  await stage.start()
  await stage.pass(15 * seconds)
  assert.deepEqual(launchedPools(stage), ['good'])
})

test('a node that never says what it is holds decisions up for half a minute, and is named meanwhile', async (t) => {
  const stage = await open(t)
  stage.world.create(kinds.node, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'orphan', labels: { [labels.nodePool]: 'default' } },
    spec: {},
  })
  waitingPod(stage, 'pod')
  await stage.start()
  await stage.pass(10 * seconds)
  assert.deepEqual(launchedPools(stage), [])
  const { status, text } = await ask(probesHandler(stage.operator.operator), '/readyz?verbose')
  assert.equal(status, 200)
  assert.match(text, /decisions wait for node\/orphan/)
  await stage.pass(30 * seconds)
  assert.equal(launchedPools(stage).length, 1)
})

test('nodes and claims whose provider ID no cloud knows leave decisions alone', async (t) => {
  const stage = await open(t)
  for (const name of ['known', 'unknown']) {
    stage.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { [labels.nodePool]: 'default', [labels.instanceType]: 'medium' } },
      spec: { providerID: `other://${name}`, taints: [{ key: 'a', effect: 'NoSchedule' }] },
    })
  }
  stage.world.create(karpenterKinds.nodeClaim, stage.aClaim('lost'))
  stage.patch(karpenterKinds.nodeClaim, 'lost', { status: { providerID: 'other://nowhere' } }, 'status')
  waitingPod(stage, 'pod', { cpu: '3' })
  await stage.start()
  await stage.pass(15 * seconds)
  assert.deepEqual(objectsWithEvent(stage, 'Nominated'), ['Pod/pod'])
})

/** The claims of pool `default` cannot be launched, in a way that ends none of them. */
async function openFailing(t: TestContext, settings: Partial<Settings> = {}): Promise<Stage> {
  const stage = await open(t, {}, settings)
  // What fails with one node class is not tried with it for another NodePool.
  stage.world.create(kwokNodeClassKind, {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'other' },
    spec: {},
  })
  const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'other' }
  stage.patch(karpenterKinds.nodePool, 'good', { spec: { template: { spec: { nodeClassRef } } } })
  stage.cloud.onCreate = ({ metadata }) => {
    if (metadata.labels?.[labels.nodePool] === 'default')
      throw new ProviderError('other', 'the cloud does not answer')
  }
  waitingPod(stage, 'pod')
  await stage.start()
  return stage
}

test('a claim that cannot be launched holds up only its own NodePool after half a minute', async (t) => {
  const stage = await openFailing(t)
  await stage.pass(25 * seconds)
  assert.deepEqual(launchedPools(stage), [])
  await stage.pass(30 * seconds)
  assert.deepEqual(launchedPools(stage), ['good'])
  assert.equal(stage.world.claims().length, 2)
  const { operator } = stage.operator
  const stuck = stage.world.claims().find(({ status }) => (status?.providerID ?? '') === '')
  const waiting = await ask(metricsHandler(operator), '/debug/waiting')
  const { objects, nodePools } = JSON.parse(waiting.text) as Record<string, unknown>
  assert.deepEqual([objects, nodePools], [[`nodeclaim/${stuck?.metadata.name ?? ''}`], ['default']])
  const { text } = await ask(probesHandler(operator), '/readyz?verbose')
  assert.match(text, /decisions wait for nodeclaim\/\S+; going on without NodePools default/)
  assert.deepEqual(await ask(probesHandler(operator), '/readyz'), { status: 200, text: 'ok' })
})

test('a pool that failed is used again once its claim is launched', async (t) => {
  const stage = await openFailing(t)
  await stage.pass(60 * seconds)
  stage.cloud.onCreate = () => undefined
  await stage.pass(90 * seconds)
  assert.deepEqual(launchedPools(stage).toSorted(), ['default', 'good'])
  // One pod has room on the node that came too late, the other one needs a node.
  for (const name of ['one', 'other']) waitingPod(stage, name, { cpu: '3' })
  await stage.pass(20 * seconds)
  assert.equal(launchedPools(stage).filter((name) => name === 'default').length, 2)
})

test('a metric tells for how long work has been waiting for a complete pass', async (t) => {
  const age = async (stage: Stage) => {
    const text = await stage.operator.operator.metrics.registry.metrics()
    const line = /tenon_last_complete_pass_age_seconds\{controller="provisioner"\} (\S+)/.exec(text)
    return Number(line?.[1])
  }
  const stage = await openFailing(t)
  await stage.pass(25 * seconds)
  const blocked = await age(stage)
  assert.ok(blocked > 5 && blocked < 30, String(blocked))
  await stage.pass(60 * seconds)
  assert.equal(await age(stage), 0)
})

test('as Karpenter does it, all pools wait until the claim is given up', async (t) => {
  const stage = await openFailing(t, { compatibility: 'karpenter' })
  await stage.pass(4 * minutes)
  assert.deepEqual(launchedPools(stage), [])
})
