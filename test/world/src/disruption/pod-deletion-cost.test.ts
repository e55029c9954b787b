/** Costs of deleting pods (wanted.md 7), on an embedded cluster with all controllers. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { karpenterKinds, kinds, labels, type Pod } from '@tenon/api'
import type { Settings } from '@tenon/operator'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import type { Clock, Transport } from '@tenon/runtime'
import { aDeployment, aKwokPool, deploymentKind, type RunningOperator, World } from '../world.ts'

const seconds = 1000
const minutes = 60 * seconds
const costAnnotation = 'controller.kubernetes.io/pod-deletion-cost'
const ownAnnotation = 'tenon.sh/pod-deletion-cost'
/** Ten fit on a node, and an eleventh does not. */
const tenth = { cpu: '370m', memory: '256Mi' }

/** One write of the operator to a Pod, not to its status. */
interface PodWrite {
  readonly name: string
  readonly atMs: number
}

interface Story {
  readonly world: World
  readonly operator: RunningOperator
  readonly writes: readonly PodWrite[]
  readonly web: () => readonly Pod[]
  readonly scale: (replicas: number) => void
  readonly annotate: (pod: Pod | undefined, annotations: Readonly<Record<string, string>>) => void
}

/**
 * A cluster at the moment at which all pods run.
 * @param refuses whether the API server refuses to patch pods.
 */
async function open(
  t: TestContext,
  replicas: number,
  { podDeletionCost = true, refuses = false }: Partial<Settings> & { readonly refuses?: boolean } = {},
): Promise<Story> {
  const writes: PodWrite[] = []
  const apiPath = (inner: Transport, clock: Clock): Transport => ({
    async send(request, signal) {
      const [, name] = /\/pods\/(?<name>[^/?]+)$/.exec(request.path) ?? []
      if (request.method !== 'PATCH' || name === undefined) return await inner.send(request, signal)
      writes.push({ name, atMs: clock.now() })
      if (!refuses) return await inner.send(request, signal)
      const status = { kind: 'Status', apiVersion: 'v1', status: 'Failure', code: 403, message: 'no' }
      return { status: 403, headers: {}, body: Readable.from([Buffer.from(JSON.stringify(status))]) }
    },
  })
  const world = await World.start({ seed: 1, provider: 'kwok', settings: { podDeletionCost }, apiPath })
  t.after(() => world.stop())
  const { local } = world.cluster.server
  world.create(kwokNodeClassKind, {
    apiVersion: 'karpenter.kwok.sh/v1alpha1',
    kind: 'KWOKNodeClass',
    metadata: { name: 'default' },
  })
  const { spec } = aKwokPool()
  const only = { key: labels.instanceType, operator: 'In' as const, values: ['c-4x-amd64-linux'] }
  const template = { spec: { ...spec.template.spec, requirements: [only] } }
  world.create(karpenterKinds.nodePool, aKwokPool('default', { template }))
  world.create(deploymentKind, aDeployment('web', replicas, tenth))
  const operator = await world.startOperator()
  const web = () => world.pods().filter(({ metadata }) => metadata.labels?.['app'] === 'web')
  await world.clock.advanceUntil(
    () => web().filter(({ status }) => status?.phase === 'Running').length === replicas,
    5 * minutes,
  )
  return {
    world,
    operator,
    writes,
    web,
    scale: (to) => local.patch(deploymentKind, 'default', 'web', { spec: { replicas: to } }),
    annotate: (pod, annotations) =>
      local.patch(kinds.pod, 'default', pod?.metadata.name ?? '', { metadata: { annotations } }),
  }
}

const costOf = ({ metadata }: Pod) => metadata.annotations?.[costAnnotation]
const nodeOf = ({ spec }: Pod) => spec.nodeName ?? ''
const byCost = (a: Pod, b: Pod) => Number(costOf(a) ?? 0) - Number(costOf(b) ?? 0)

test('WNT-36 scaling 100 pods on 10 nodes to 50 empties five nodes, and no pod moves', async (t) => {
  const { world, web, scale } = await open(t, 100)
  assert.equal(world.nodes().length, 10)
  await world.clock.advance(2 * minutes)
  const leaving = web().toSorted(byCost).slice(0, 50)
  const staying = web().filter((pod) => !leaving.includes(pod))
  const planned = new Set(leaving.map(nodeOf))
  assert.equal(planned.size, 5)
  scale(50)
  await world.clock.advance(10 * seconds)
  assert.deepEqual(
    web().filter((pod) => planned.has(nodeOf(pod))),
    [],
  )
  await world.clock.advanceUntil(() => world.nodes().length === 5, 10 * minutes)
  assert.deepEqual(
    world.nodes().filter(({ metadata }) => planned.has(metadata.name)),
    [],
  )
  const uids = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata.uid ?? '').toSorted()
  assert.deepEqual(uids(web()), uids(staying))
})

test('WNT-36 costs are written at most once in five minutes, and only when the order changes', async (t) => {
  const { world, operator, writes, web, annotate } = await open(t, 30)
  await world.clock.advance(10 * minutes)
  assert.equal(writes.length, 30)
  const before = new Map(web().map((pod) => [pod.metadata.name, costOf(pod)]))
  await world.bury(operator)
  await world.startOperator()
  await world.clock.advance(10 * minutes)
  assert.equal(writes.length, 30, 'a restart changes no order')
  // A node that may not be disrupted is not next any more.
  const [first] = web().toSorted(byCost)
  annotate(first, { 'karpenter.sh/do-not-disrupt': 'true' })
  await world.clock.advance(2 * minutes)
  const changed = web().filter((pod) => costOf(pod) !== before.get(pod.metadata.name))
  assert.equal(writes.length, 40)
  assert.deepEqual(
    changed.map((pod) => [nodeOf(pod), costOf(pod)]),
    Array.from({ length: 10 }, () => [first && nodeOf(first), undefined]),
  )
  annotate(first, { 'karpenter.sh/do-not-disrupt': 'false' })
  await world.clock.advance(2 * minutes)
  assert.equal(writes.length, 40, 'five minutes have not passed')
  await world.clock.advance(4 * minutes)
  assert.equal(writes.length, 50)
})

test('WNT-37 costs set by their owner are never changed, and no pod of such a ReplicaSet gets another one', async (t) => {
  for (const cost of ['-100', '', 'x'.repeat(10_000)]) {
    const { world, web, writes, annotate } = await open(t, 20)
    const [owned] = web()
    annotate(owned, { [costAnnotation]: cost })
    await world.clock.advance(7 * minutes)
    assert.equal(writes.length, 0)
    assert.deepEqual(
      web().flatMap((pod) => costOf(pod) ?? []),
      [cost],
    )
  }
})

test('WNT-37 an owner who sets a cost later keeps it, and the other costs go', async (t) => {
  const { world, web, annotate } = await open(t, 20)
  await world.clock.advance(7 * minutes)
  assert.equal(web().filter((pod) => costOf(pod) !== undefined).length, 20)
  annotate(web()[0], { [costAnnotation]: '7' })
  await world.clock.advance(7 * minutes)
  assert.deepEqual(
    web().flatMap((pod) => costOf(pod) ?? []),
    ['7'],
  )
})

test('WNT-42 an annotation of ours that another wrote does not make a cost ours', async (t) => {
  const { world, web, writes, annotate } = await open(t, 20)
  const hostile = [
    '',
    'x'.repeat(10_000),
    '__proto__',
    'NaN',
    '-1',
    '1e309',
    '-1 2026-99-99T99:99:99Z',
    '-2 2026-01-01T00:00:00Z',
  ]
  for (const [at, value] of hostile.entries())
    annotate(web()[at], { [costAnnotation]: '-1', [ownAnnotation]: value })
  await world.clock.advance(7 * minutes)
  assert.equal(writes.length, 0)
})

test('without the right to patch pods the rest goes on, and the API server is asked now and then', async (t) => {
  const { world, web, writes, scale } = await open(t, 100, { refuses: true })
  await world.clock.advance(20 * minutes)
  assert.equal(writes.length <= 5 * 100, true, `${writes.length} writes`)
  scale(30)
  await world.clock.advanceUntil(() => world.nodes().length <= 4, 20 * minutes)
  assert.equal(world.nodes().length <= 4, true)
  assert.equal(web().length, 30)
})

test('many costs are written over time', async (t) => {
  const { world, writes } = await open(t, 300)
  await world.clock.advance(5 * minutes)
  assert.equal(writes.length, 300)
  for (const { atMs } of writes)
    assert.equal(
      writes.filter((each) => each.atMs >= atMs && each.atMs < atMs + 4 * seconds).length <= 100,
      true,
    )
})

test('WNT-37 costs that are planned are not written once their NodePool is only observed', async (t) => {
  const { world, writes } = await open(t, 300)
  await world.clock.advanceUntil(() => writes.length === 100, 5 * minutes)
  const observe = { metadata: { annotations: { 'tenon.sh/mode': 'observe' } } }
  world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'default', observe)
  await world.clock.advance(2 * minutes)
  assert.equal(writes.length, 100)
})

test('without the option no pod is written to', async (t) => {
  const { world, web, writes } = await open(t, 20, { podDeletionCost: false })
  await world.clock.advance(7 * minutes)
  assert.equal(writes.length, 0)
  assert.deepEqual(
    web().flatMap((pod) => costOf(pod) ?? []),
    [],
  )
})
