/** Traces of pods, NodeClaims and disruptions (adoption.md 4). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { karpenterKinds, type KubeObject, kinds, type NodeClaim, type ResourceType } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { type FinishedSpan, JsonLogger, parseTraceparent, VirtualClock } from '@tenon/runtime'
import { aType, madeClaims, PoolCloud, waitingPod } from '../testing/pools.test-support.ts'
import { minutes, seconds, Stage } from '../testing/stage.test-support.ts'
import type { WorldOptions } from '../world.ts'

const traceparent = 'tenon.sh/traceparent'

interface TracedStage {
  readonly stage: Stage
  readonly cloud: PoolCloud
  readonly spans: readonly FinishedSpan[]
}

async function open(
  t: TestContext,
  options: Partial<WorldOptions> & Parameters<typeof Stage.open>[1] = {},
): Promise<TracedStage> {
  let stage: Stage | undefined
  const cloud = new PoolCloud(() => (stage as Stage).world.clock)
  cloud.instanceTypes = [aType('medium', 4)]
  const spans: FinishedSpan[] = []
  stage = await Stage.open(t, { provider: cloud, onSpan: (span) => spans.push(span), ...options })
  return { stage, cloud, spans }
}

/** A pod that waits, and the NodeClaim that is created for it. */
async function claimed(stage: Stage): Promise<NodeClaim> {
  waitingPod(stage, 'web')
  await stage.pass(10 * seconds)
  const [claim] = madeClaims(stage)
  assert.ok(claim !== undefined)
  return claim
}

function named(spans: readonly FinishedSpan[], name: string): FinishedSpan {
  const found = spans.filter((span) => span.name === name)
  assert.equal(found.length, 1, `${found.length} spans ${name}`)
  return found[0] as FinishedSpan
}

/** Names of the children of a span that are not requests, by begin. */
function stepsOf(spans: readonly FinishedSpan[], parent: FinishedSpan): readonly string[] {
  return spans
    .filter((span) => span.parent?.spanId === parent.context.spanId && span.kind === 'internal')
    .toSorted((a, b) => a.startMs - b.startMs || a.endMs - b.endMs)
    .map(({ name }) => name)
}

/** Each parent that is named exists, in the same trace, and began before its child. */
function assertWhole(spans: readonly FinishedSpan[]): void {
  const byId = new Map(spans.map((span) => [span.context.spanId, span]))
  for (const { name, parent, context, startMs, endMs } of spans) {
    assert.ok(endMs >= startMs, name)
    if (parent === undefined) continue
    const above = byId.get(parent.spanId)
    assert.ok(above !== undefined, `the parent of ${name} was not sent`)
    assert.equal(above.context.traceId, context.traceId)
    assert.ok(above.startMs <= startMs, `${name} began before ${above.name}`)
  }
}

test('ADO-12 a pod is traced from its batch to the initialized node, and the traces are linked', async (t) => {
  const { stage, spans } = await open(t)
  const claim = await claimed(stage)
  await stage.join(claim.metadata.name)
  await stage.pass(5 * seconds)
  await stage.report(`node-${claim.metadata.name}`)

  const create = named(spans, 'create NodeClaim')
  const batch = spans.find(({ context }) => context.spanId === named(spans, 'create').parent?.spanId)
  assert.ok(batch?.name === 'batch' && batch.parent === undefined)
  assert.deepEqual(stepsOf(spans, batch), ['wait', 'gather', 'decide', 'create'])
  assert.deepEqual(create.attributes['tenon.pods'], ['default/web'])
  assert.equal(create.attributes['tenon.nodeclaim'], claim.metadata.name)
  const post = named(spans, 'POST nodeclaims')
  assert.deepEqual([post.kind, post.parent], ['client', create.context])

  const root = named(spans, 'NodeClaim')
  assert.deepEqual(stepsOf(spans, root), ['launch', 'register', 'initialize'])
  assert.deepEqual([root.links, create.links], [[create.context], [root.context]])
  assert.notEqual(root.context.traceId, batch.context.traceId)
  assert.equal(named(spans, 'cloud Create').parent?.spanId, named(spans, 'launch').context.spanId)
  const phases = ['launch', 'register', 'initialize'].map((name) => named(spans, name))
  for (const [at, phase] of phases.entries())
    assert.equal(phase.startMs, at === 0 ? root.startMs : phases[at - 1]?.endMs)
  assert.equal(phases.at(-1)?.endMs, root.endMs)
  assertWhole(spans)

  const after = spans.length
  await stage.pass(2 * minutes)
  const later = spans.slice(after).filter(({ context }) => context.traceId === root.context.traceId)
  assert.deepEqual(later, [], 'the trace ends with the initialization')
})

test("ADO-12 a NodeClaim's trace goes on in the next process, whatever the last one had sent", async (t) => {
  const { stage, spans } = await open(t)
  const claim = await claimed(stage)
  await stage.join(claim.metadata.name)
  await stage.pass(5 * seconds)
  const before = spans.filter(({ name }) => name === 'launch' || name === 'register')
  assert.equal(before.length, 2)
  const create = named(spans, 'create NodeClaim')
  await stage.restart()
  const mark = spans.length
  await stage.report(`node-${claim.metadata.name}`)
  const own = spans.slice(mark)
  const root = named(own, 'NodeClaim')
  assert.deepEqual(root.links, [create.context])
  assert.deepEqual(root.context, parseTraceparent(claim.metadata.annotations?.[traceparent]))
  assert.deepEqual(stepsOf(own, root), ['launch', 'register', 'initialize'])
  for (const { name, context } of before)
    assert.deepEqual(named(own, name).context, context, 'what is sent again has the same ids')
  assertWhole(own)
})

test('ADO-12 a launch that fails ends the trace, with the kind of the error', async (t) => {
  const { stage, cloud, spans } = await open(t)
  cloud.onCreate = () => {
    throw new ProviderError('insufficientCapacity', 'zone-1 is sold out')
  }
  waitingPod(stage, 'web')
  await stage.pass(4 * seconds)
  const create = spans.find(({ name }) => name === 'cloud Create')
  assert.equal(create?.error, 'ProviderError.insufficientCapacity')
  const root = spans.find(
    ({ name, context }) => name === 'NodeClaim' && context.traceId === create.context.traceId,
  )
  assert.equal(root?.error, 'deleted')
  const own = spans.filter(({ context }) => context.traceId === root.context.traceId)
  assert.deepEqual(stepsOf(own, root), ['launch'])
})

test('ADO-12 a disruption is a trace of its steps, linked to the traces of its nodes', async (t) => {
  const { stage, spans } = await open(t)
  const claim = await claimed(stage)
  await stage.join(claim.metadata.name)
  await stage.report(`node-${claim.metadata.name}`)
  stage.world.cluster.server.local.delete(kinds.pod, 'default', 'web', { gracePeriodSeconds: 0 })
  const disruption = {
    consolidateAfter: '0s',
    consolidationPolicy: 'WhenEmpty',
    budgets: [{ nodes: '100%' }],
  }
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { disruption } })
  await stage.pass(2 * minutes)
  const root = named(spans, 'disruption')
  assert.deepEqual(stepsOf(spans, root), ['taint nodes', 'wait', 'delete'])
  assert.deepEqual(root.links, [named(spans, 'NodeClaim').context])
  assert.deepEqual(root.attributes['tenon.nodes'], [`node-${claim.metadata.name}`])
  assert.equal(root.error, undefined)
  assertWhole(spans)
})

test('ADO-12 log lines and events name the trace that they belong to', async (t) => {
  const lines: Readonly<Record<string, unknown>>[] = []
  const write = (line: string) => lines.push(JSON.parse(line) as Readonly<Record<string, unknown>>)
  const { stage, spans } = await open(t, {
    logger: new JsonLogger(new VirtualClock(), write, { value: 'info' }),
  })
  const claim = await claimed(stage)
  const idsOf = (message: string) => lines.find((line) => line['message'] === message)?.['trace_id']
  const batch = spans.find(({ context }) => context.spanId === named(spans, 'create').parent?.spanId)
  assert.equal(idsOf('created nodeclaim'), batch?.context.traceId)
  const trace = parseTraceparent(claim.metadata.annotations?.[traceparent])
  assert.equal(idsOf('launched nodeclaim'), trace?.traceId)
  const events = stage.world.cluster.server.local.list(
    kinds.event as ResourceType<KubeObject & { readonly reason: string }>,
  )
  const nominated = events.find(({ reason }) => reason === 'Nominated')
  const ofEvent = parseTraceparent(nominated?.metadata.annotations?.[traceparent])
  assert.equal(ofEvent?.traceId, batch?.context.traceId)
})

test('ADO-12 annotations that are no trace, or another one, harm nothing', async (t) => {
  const { stage, spans } = await open(t)
  const hostile = ['', 'x'.repeat(10_000), '__proto__', 'NaN', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`]
  for (const [at, text] of hostile.entries())
    await stage.ready(
      `c-${at}`,
      {},
      { annotations: { [traceparent]: text, 'tenon.sh/created-in-trace': text } },
    )
  for (const at of hostile.keys()) assert.equal(stage.state(`c-${at}`, 'Initialized'), 'True/Initialized')
  assert.deepEqual(
    spans.filter(({ name }) => name === 'NodeClaim'),
    [],
  )
})

test('ADO-12 NodeClaims have traces of their own, whatever the NodePool says', async (t) => {
  const { stage } = await open(t)
  const template = stage.poolNow()?.spec.template
  const annotations = { [traceparent]: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` }
  stage.patch(karpenterKinds.nodePool, 'default', {
    spec: { template: { ...template, metadata: { annotations } } },
  })
  const claim = await claimed(stage)
  assert.notEqual(claim.metadata.annotations?.[traceparent], annotations[traceparent])
})

test('ADO-5 no value of a secret, a variable or an annotation gets into a trace', async (t) => {
  const planted = 'planted-token-4711'
  const { stage, cloud, spans } = await open(t)
  cloud.onGet = () => {
    throw new Error(`the cloud refused ${planted}`)
  }
  cloud.onCreate = ({ metadata }) => {
    if (stage.now % 2 === 0) throw new Error(`${metadata.name}: ${planted}`)
  }
  const env = [{ name: 'TOKEN', value: planted }]
  const containers = [{ name: 'app', image: 'registry.k8s.io/pause', env }]
  waitingPod(stage, 'web', { annotations: { 'example.com/token': planted }, spec: { containers } })
  await stage.pass(2 * minutes)
  for (const claim of stage.world.claims()) {
    stage.patch(karpenterKinds.nodeClaim, claim.metadata.name, {
      metadata: { annotations: { 'example.com/token': planted } },
    })
    await stage.deleteClaim(claim.metadata.name)
  }
  await stage.pass(minutes)
  assert.ok(spans.some(({ error }) => error !== undefined))
  assert.ok(!JSON.stringify(spans).includes(planted))
})

test('ADO-12 without a tracer nothing is written that only traces need', async (t) => {
  const { stage } = await open(t, { onSpan: undefined as never })
  const claim = await claimed(stage)
  await stage.join(claim.metadata.name)
  await stage.report(`node-${claim.metadata.name}`)
  const { local } = stage.world.cluster.server
  const objects: readonly KubeObject[] = [
    ...local.list(kinds.event),
    ...stage.world.claims(),
    ...local.list(kinds.node),
  ]
  assert.ok(objects.length > 3)
  assert.ok(!JSON.stringify(objects).includes('trace'))
})
