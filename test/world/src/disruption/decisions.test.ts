import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds, kinds, labels } from '@tenon/api'
import { metricsHandler } from '@tenon/operator'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'
import { createPool, madeClaims } from '../testing/pools.test-support.ts'
import { aKwokPool } from '../world.ts'
import { setDisruption } from './disruption-stage.test-support.ts'
import {
  aNodeOf,
  anOversizedNode,
  consolidate,
  joinReplacements,
  large,
  openReplacing,
  running,
  small,
  untilBegun,
} from './replacing-stage.test-support.ts'

interface Answer {
  readonly node?: string
  readonly nodeClaim: string
  readonly nodePool: string
  readonly cause: string
  readonly message: string
  readonly until?: string
  readonly others?: readonly { readonly cause: string; readonly message: string; readonly until?: string }[]
  readonly at: string
}

/** What the metrics port answers, by claim. */
async function decisions(stage: Stage): Promise<Readonly<Record<string, Answer>>> {
  const request = { method: 'GET', path: '/debug/decisions', headers: {} } as const
  const response = await metricsHandler(stage.operator.operator)(request, new AbortController().signal)
  assert.equal(response.status, 200)
  let text = ''
  for await (const chunk of response.body)
    text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString()
  const { decisions: all } = JSON.parse(text) as { readonly decisions: readonly Answer[] }
  return Object.fromEntries(all.map((each) => [each.nodeClaim, each]))
}

/** `cause: message` of one claim's answer. */
async function answer(stage: Stage, claim: string): Promise<string> {
  const { cause, message } = (await decisions(stage))[claim] ?? {}
  return `${cause}: ${message}`
}

test('for every node there is an answer that names the pod, PDB, budget or policy that keeps it', async (t) => {
  const stage = await openReplacing(t, { types: [small] })
  createPool(
    stage,
    aKwokPool('closed', { disruption: { consolidateAfter: '0s', budgets: [{ nodes: '0' }] } }),
  )
  createPool(
    stage,
    aKwokPool('calm', { disruption: { consolidateAfter: '0s', consolidationPolicy: 'WhenEmpty' } }),
  )
  const started = async (name: string, nodePool: string) => {
    const requirements = [{ key: labels.instanceType, operator: 'In' as const, values: ['small'] }]
    await stage.claim(name, { requirements }, { labels: { [labels.nodePool]: nodePool } })
    await stage.join(name)
    await stage.report(`node-${name}`, 'True', { cpu: '2' })
    await running(stage, `on-${name}`, `node-${name}`, '1500m', { labels: { app: name } })
  }
  await started('guarded', 'default')
  await started('held', 'default')
  await started('closed', 'closed')
  await started('calm', 'calm')
  await started('best', 'default')
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'guard', namespace: 'default' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } },
  })
  const protectedPod = { metadata: { annotations: { [annotations.doNotDisrupt]: 'true' } } }
  stage.patch(kinds.pod, 'on-held', protectedPod, undefined, 'default')
  await stage.pass(seconds)
  assert.match(await answer(stage, 'best'), /^policy: Consolidation is disabled \(NodePool=default\)$/)
  consolidate(stage)
  await stage.pass(minutes)
  await stage.claim('new')
  const all = await decisions(stage)
  assert.deepEqual(
    Object.values(all)
      .map(({ nodeClaim, cause }) => `${nodeClaim} ${cause}`)
      .toSorted(),
    ['best price', 'calm policy', 'closed budget', 'guarded podDisruptionBudget', 'held pod', 'new node'],
  )
  const says = (claim: string) => all[claim]?.message ?? ''
  assert.match(says('guarded'), /PDB=default\/guard/)
  assert.match(says('held'), /Pod=default\/on-held/)
  assert.match(says('closed'), /NodePool=closed, allowed=0, disrupted=0/)
  assert.match(says('calm'), /consolidationPolicy=WhenEmpty/)
  assert.equal(says('best'), "Can't replace with a cheaper node")
  assert.deepEqual(
    { node: all['best']?.node, nodePool: all['best']?.nodePool },
    { node: 'node-best', nodePool: 'default' },
  )
  assert.equal('node' in (all['new'] ?? {}), false)
  const ageMs = stage.now - Date.parse(all['best']?.at ?? '')
  assert.ok(ageMs > 0 && ageMs < minutes, `found out ${ageMs} ms ago`)
})

test('EXP-6 all that keeps a node is told in the order in which it counts, with when it ends', async (t) => {
  const stage = await openReplacing(t, { types: [small] })
  await aNodeOf(stage, 'a', small)
  await running(stage, 'held', 'node-a', '100m', { labels: { app: 'held' } })
  await running(stage, 'guarded', 'node-a', '100m', { labels: { app: 'guarded' } })
  stage.world.create(kinds.podDisruptionBudget, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'guard', namespace: 'default' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } },
  })
  const protectedPod = { metadata: { annotations: { [annotations.doNotDisrupt]: 'true' } } }
  stage.patch(kinds.pod, 'held', protectedPod, undefined, 'default')
  const budgets = [{ nodes: '0', schedule: '0 0 * * *', duration: '23h' }, { nodes: '1' }]
  setDisruption(stage, { consolidateAfter: '2h', budgets })
  await stage.pass(minutes)
  const { cause, others = [] } = (await decisions(stage))['a'] ?? {}
  assert.deepEqual(
    [cause, ...others.map((each) => each.cause)],
    ['pod', 'podDisruptionBudget', 'policy', 'budget'],
  )
  const leftMs = Date.parse(others[1]?.until ?? '') - stage.now
  assert.ok(leftMs > 0 && leftMs < 120 * minutes, 'consolidateAfter has not passed')
  assert.match(others[2]?.until ?? '', /T23:00:00Z$/)
})

test('a node that goes says so, and one whose commands came to nothing waits', async (t) => {
  const stage = await anOversizedNode(t)
  consolidate(stage)
  await untilBegun(stage)
  assert.match(await answer(stage, 'a'), /^command: /)
  for (let i = 0; i < 2; i++) {
    // It has an instance by then.
    await stage.pass(2 * seconds)
    const replacement = madeClaims(stage).find(({ metadata }) => metadata.deletionTimestamp === undefined)
    stage.delete(karpenterKinds.nodeClaim, replacement?.metadata.name ?? '')
    await stage.pass(10 * seconds)
    if (i === 0) await untilBegun(stage)
  }
  assert.match(await answer(stage, 'a'), /^failedCommand: /)
  await stage.pass(2 * minutes)
  await joinReplacements(stage)
  await stage.pass(10 * seconds)
  assert.equal((await decisions(stage))['a']?.cause, 'node')
})

test('pods that have no other place are named, and so is a rest that is not over', async (t) => {
  const stage = await openReplacing(t, { types: [large] })
  await aNodeOf(stage, 'a', large)
  await running(stage, 'p', 'node-a', '1', { spec: { nodeSelector: { [labels.hostname]: 'node-a' } } })
  consolidate(stage)
  await stage.pass(30 * seconds)
  assert.match(await answer(stage, 'a'), /^pods: Not all pods would schedule, default\/p => /)
  setDisruption(stage, { consolidateAfter: '1h' })
  await stage.pass(seconds)
  assert.match(await answer(stage, 'a'), /^policy: .*consolidateAfter=1h/)
})

test('a node whose workload was moved in vain says so, and when it is tried again', async (t) => {
  const stage = await anOversizedNode(t)
  const { caches, state } = stage.operator.operator
  consolidate(stage)
  await stage.pass(3 * seconds)
  // Any object will do that is there: a pod without its owner would be collected.
  const { uid = '' } = caches.nodePools.get({ name: 'default' })?.metadata ?? {}
  const owner = { apiVersion: 'karpenter.sh/v1', kind: 'NodePool', name: 'default', uid, controller: true }
  await running(stage, 'owned', 'node-a', '500m', { ownerReferences: [owner] })
  const pods = state.podsOn('node-a').filter(({ metadata }) => metadata.name === 'owned')
  state.movedPods.move(pods, true)
  assert.equal(state.movedPods.launchFor(pods), 1)
  assert.equal(
    await answer(stage, 'a'),
    'failedCommand: Pods of the same workload needed a new node when they were moved last; it is tried again in 15 min (Pod=default/owned)',
  )
})
