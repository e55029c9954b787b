/** What is true for a long time is told now and then, not in every pass. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, kinds, type KubeObject, labels, type ResourceType } from '@tenon/api'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { createPool, waitingPod } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'
import { left, openDisruption, setDrifted, eventMessages } from './disruption-stage.test-support.ts'

interface CountedEvent extends KubeObject {
  readonly reason: string
  readonly message: string
  readonly type: string
  readonly count: number
  readonly involvedObject: { readonly kind: string; readonly name: string }
}

/** How often a reason was told about an object, `Kind/name`, repetitions of the same text included. */
function times(stage: Stage, reason: string, object: string, text = ''): number {
  return stage.world.cluster.server.local
    .list(kinds.event as ResourceType<CountedEvent>)
    .filter(({ involvedObject: { kind, name } }) => `${kind}/${name}` === object)
    .filter((event) => event.reason === reason && event.message.includes(text))
    .reduce((sum, { count }) => sum + count, 0)
}

const never = { disruption: { budgets: [{ nodes: '0' }] } }

test('OPS-40 a budget of none shows in the gauge, and the pool is told once a minute for each reason', async (t) => {
  const stage = await openDisruption(t, never)
  setDrifted(stage, 'b')
  for (const name of ['a', 'b']) await stage.ready(name)
  await stage.pass(5 * minutes)
  const series = { nodepool: 'default', reason: 'Empty' }
  assert.equal(await stage.metric('nodepools_allowed_disruptions', series), 0)
  assert.deepEqual(left(stage), ['a', 'b'])
  for (const reason of ['Empty', 'Drifted']) {
    const count = times(stage, 'DisruptionBlocked', 'NodePool/default', `reason ${reason}`)
    assert.ok(count >= 4 && count <= 6, `${reason}: ${count} times in 5 min`)
  }
})

test('OPS-100 a pool without nodes whose budget is none has its gauge at 0 and no event', async (t) => {
  const stage = await openDisruption(t, never)
  createPool(stage, aKwokPool('used', never))
  await stage.ready('a', {}, { labels: { [labels.nodePool]: 'used' } })
  await stage.pass(2 * minutes)
  const series = { nodepool: 'default', reason: 'Empty' }
  assert.equal(await stage.metric('nodepools_allowed_disruptions', series), 0)
  const metric = stage.operator.operator.metrics.registry.getSingleMetric(
    'karpenter_nodepools_allowed_disruptions',
  )
  const { values = [] } = (await metric?.get()) ?? {}
  assert.ok(values.some((each) => each.labels['nodepool'] === 'default' && each.labels['reason'] === 'Empty'))
  assert.equal(times(stage, 'DisruptionBlocked', 'NodePool/default'), 0)
})

test('OPS-47 why a node cannot be consolidated is told once in a quarter of an hour, on node and claim', async (t) => {
  const stage = await openDisruption(t, { disruption: { consolidationPolicy: 'WhenEmptyOrUnderutilized' } })
  const medium = { [labels.instanceType]: 'medium', [labels.zone]: 'zone-1' }
  await stage.ready('a', {}, { labels: { ...medium, [labels.capacityType]: 'on-demand' } })
  const requests = { cpu: '3', memory: '1Gi' }
  await stage.pod('app', 'node-a', {
    spec: { containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests } }] },
  })
  const both = ['Node/node-a', 'NodeClaim/a']
  await stage.world.clock.advanceUntil(() => times(stage, 'Unconsolidatable', 'Node/node-a') > 0, 5 * minutes)
  await stage.pass(14 * minutes)
  for (const object of both) assert.equal(times(stage, 'Unconsolidatable', object), 1)
  await stage.pass(2 * minutes)
  for (const object of both) assert.equal(times(stage, 'Unconsolidatable', object), 2)
})

test('OPS-48 an annotation that makes no sense is told as a Warning on the pod', async (t) => {
  const stage = await openDisruption(t)
  await stage.ready('a')
  await stage.pod('app', 'node-a', { annotations: { [annotations.doNotDisrupt]: 'abc' } })
  await stage.pass(30 * seconds)
  const [event, ...others] = stage.events('InvalidDoNotDisruptAnnotation')
  assert.deepEqual([event?.type, event?.object, others], ['Warning', 'Pod/app', []])
  assert.match(event?.message ?? '', /abc/)
})

test('OPS-49 a pod that asks for nodes of no NodePool is left to others without a word', async (t) => {
  const stage = await openDisruption(t)
  const without = { matchExpressions: [{ key: labels.nodePool, operator: 'DoesNotExist' as const }] }
  const required = { nodeSelectorTerms: [without] }
  waitingPod(stage, 'elsewhere', {
    spec: { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } } },
  })
  await stage.pass(2 * minutes)
  assert.deepEqual(stage.world.claims(), [])
  assert.deepEqual(eventMessages(stage, 'FailedScheduling', 'Pod/elsewhere'), [])
  assert.deepEqual(eventMessages(stage, 'Nominated', 'Pod/elsewhere'), [])
  waitingPod(stage, 'giant', { cpu: '1000' })
  await stage.pass(2 * minutes)
  assert.equal(eventMessages(stage, 'FailedScheduling', 'Pod/giant').length, 1)
})
