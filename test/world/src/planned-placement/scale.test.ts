import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, labels, type Node } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { Field, seconds } from './field.test-support.ts'

const shapes = [
  ['250m', '512Mi'],
  ['500m', '1Gi'],
  ['1', '2Gi'],
  ['100m', '256Mi'],
  ['1500m', '4Gi'],
  ['2', '16Gi'],
  ['4', '8Gi'],
  ['750m', '6Gi'],
] as const
const podsPerShape = 100
/** What the controller's command sets for its client. */
const rate = { perSecond: 200, burst: 300 }
const isRegistered = ({ metadata }: Node) => metadata.labels?.[labels.registered] === 'true'

/** Longest time from a Node's appearance until it opens. */
function slowestOpening(field: Field): () => number {
  const { server } = field.world.cluster
  const appeared = new Map<string, number>()
  let slowestMs = 0
  server.local.subscribe<Node>(kinds.node, {
    added: ({ metadata }) => {
      appeared.set(metadata.name, field.world.clock.now())
    },
    updated: (node, old) => {
      if (!isRegistered(node) || isRegistered(old)) return
      const since = appeared.get(node.metadata.name) ?? Number.NaN
      slowestMs = Math.max(slowestMs, field.world.clock.now() - since)
    },
  })
  return () => slowestMs
}

/** How many pods run on the Node of the claim that was launched for them. */
function wherePlanned(field: Field): number {
  const planned = new Map(
    field
      .claims()
      .flatMap(({ metadata, status }) =>
        (metadata.annotations?.['tenon.sh/planned-pods'] ?? '')
          .split(',')
          .map((part) => [part, status?.nodeName] as const),
      ),
  )
  return field.world
    .pods()
    .filter(({ metadata, spec }) => planned.get(metadata.uid?.slice(0, 13) ?? '') === spec.nodeName).length
}

test('PLA-4 800 pods of eight shapes run where planned under the default rate limit, no node is late', async (t) => {
  const field = await Field.open(t, { mostCpu: 16, rate, latencyMs: 20 })
  const slowestMs = slowestOpening(field)
  shapes.forEach(([cpu, memory], at) => {
    field.pods(`shape-${at}`, podsPerShape, cpu, memory)
  })
  await field.pass(5 * seconds)
  await field.start()
  const total = shapes.length * podsPerShape
  assert.ok(await field.until(() => field.isAllBound && field.claims().length > 0, 60 * seconds))
  await field.pass(2 * seconds)
  t.diagnostic(`${wherePlanned(field)} of ${total} where planned, nodes open after ${slowestMs()} ms`)
  assert.equal(field.said('computed new nodeclaim(s)').length, 1)
  assert.ok(field.claims().length > 50)
  assert.ok(wherePlanned(field) >= 0.99 * total, `${wherePlanned(field)} where planned`)
  assert.ok(slowestMs() <= defaultSettings.nominationHoldMs + seconds, `${slowestMs()} ms`)
  const nominated = await field.metric('pods_nominations_total')
  assert.ok(nominated >= 0.99 * total && nominated <= total, `${nominated} nominated`)
  assert.ok(field.nominations.length <= 1.02 * total, `${field.nominations.length} requests for nominations`)
  // Writes that are refused, or repeat what stands already, take their share of the rate from the others.
  const refused = field.answers.filter(({ status }) => status >= 400)
  t.diagnostic(`${field.answers.length} writes, ${refused.length} of them refused`)
  assert.ok(refused.length <= 0.01 * field.answers.length, JSON.stringify(refused))
  const ofClaims = field.answers.filter(({ path }) => /\/nodeclaims\/.*\/status/.test(path)).length
  assert.ok(ofClaims <= 6 * field.claims().length, `${ofClaims} writes of the status of claims`)
  // One claim asks for all of them whether they may open.
  const looks = await field.metric('controller_runtime_reconcile_total', {
    controller: 'nodeclaim.lifecycle',
  })
  t.diagnostic(`${looks} looks at claims`)
  assert.ok(looks <= 24 * field.claims().length, `${looks} looks at ${field.claims().length} claims`)
})

test('of two shapes in large numbers the scheduler is only told where the larger go', async (t) => {
  const field = await Field.open(t, { mostCpu: 16, rate, latencyMs: 20 })
  field.pods('small', 300, '900m', '3100Mi')
  field.pods('large', 300, '3500m', '28Gi')
  await field.pass(5 * seconds)
  await field.start()
  assert.ok(await field.until(() => field.isAllBound && field.claims().length > 0, 60 * seconds))
  await field.pass(2 * seconds)
  assert.equal(field.said('computed new nodeclaim(s)').length, 1, 'nobody was left over')
  assert.deepEqual(new Set(field.nominations.map(({ pod }) => pod.split('-')[0])), new Set(['large']))
  const larger = field.world.pods().filter(({ metadata: { name } }) => name.startsWith('large'))
  assert.equal(await field.metric('pods_nominations_outcomes_total', { outcome: 'honoured' }), larger.length)
  assert.equal(field.said('pod bound elsewhere than planned').length, 0)
})
