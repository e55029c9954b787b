import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { karpenterKinds, type NodeClaim } from '@tenon/api'
import { createKubeClient, type KubeClient } from '@tenon/kube'
import { latestForeignWrite, type Settings } from '@tenon/operator'
import { rfc3339, type Transport } from '@tenon/runtime'
import { left, openDisruption, tainted } from '../disruption/disruption-stage.test-support.ts'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import { minutes, seconds, type Stage } from '../testing/stage.test-support.ts'

/** A cluster whose API server counts the writes of the operator. */
async function opened(t: TestContext, settings: Partial<Settings> = {}) {
  const writes: string[] = []
  const apiPath = (inner: Transport): Transport => ({
    send: (request, signal) => {
      if (request.method !== 'GET') writes.push(`${request.method} ${request.path.split('?')[0]}`)
      return inner.send(request, signal)
    },
  })
  const disruption = { consolidateAfter: 'Never' }
  const stage = await openDisruption(t, { types: [aType('small', 2)], disruption, apiPath, settings })
  const { clock } = stage.world
  const other = (userAgent: string) =>
    createKubeClient({ transport: stage.world.kubeTransport(), clock, userAgent })
  return { stage, writes, other }
}

/** A claim as another Karpenter makes it. */
async function launchedBy(client: KubeClient, stage: Stage, name: string): Promise<void> {
  const created = client.create(karpenterKinds.nodeClaim, stage.aClaim(name))
  await stage.pass(100)
  await created
}

async function statusOf(client: KubeClient, stage: Stage, name: string): Promise<void> {
  const lastTransitionTime = rfc3339(stage.now)
  const status = {
    providerID: `fake://${name}`,
    capacity: { cpu: '2', memory: '4Gi', pods: '110' },
    allocatable: { cpu: '2', memory: '4Gi', pods: '110' },
    conditions: [{ type: 'Launched', status: 'True', reason: 'Launched', message: '', lastTransitionTime }],
  }
  const patched = client.patch(karpenterKinds.nodeClaim, { name }, { status }, { subresource: 'status' })
  await stage.pass(100)
  await patched
}

const observing = (stage: Stage) => stage.metric('tenon_standing_back')

test('ADO-6 while another Karpenter writes NodeClaims, nothing is written; ten minutes after its last write it acts', async (t) => {
  const { stage, writes, other } = await opened(t)
  const karpenter = other('karpenter/1.8.0')
  await stage.pass(minutes)
  assert.equal(await observing(stage), 0)
  await launchedBy(karpenter, stage, 'theirs-1')
  assert.equal(await observing(stage), 1)
  assert.match(
    stage.operator.operator.others?.because ?? '',
    /^another controller serves the same NodePools: karpenter created NodeClaim theirs-1 at \S+; Tenon only observes until nothing has been written for 10 min$/,
  )
  writes.length = 0
  for (const pod of ['a', 'b', 'c']) waitingPod(stage, pod, { cpu: '1500m' })
  for (let minute = 0; minute < 8; minute++) {
    await statusOf(karpenter, stage, 'theirs-1')
    await stage.pass(minutes)
  }
  await stage.pass(8.5 * minutes)
  assert.deepEqual(writes, [])
  assert.equal(stage.cloud.count('create'), 0)
  const launches = [...stage.operator.operator.journal.entries()].filter(({ kind }) => kind === 'launch')
  assert.ok(launches.length > 0)
  assert.ok(launches.every(({ observed }) => observed === true))
  await stage.pass(2 * minutes)
  assert.equal(await observing(stage), 0)
  assert.equal(stage.operator.operator.others?.because, undefined)
  assert.ok(madeClaims(stage).length > 0, 'the pod gets a node')
})

test('ADO-6 a managed Karpenter of another name is recognized by the status that it writes', async (t) => {
  const { stage, other } = await opened(t)
  await stage.ready('ours')
  await stage.pass(2 * minutes)
  await statusOf(other('managed-karpenter/2'), stage, 'ours')
  assert.equal(await observing(stage), 1)
})

test('ADO-6 our own name on a claim that we have not written for minutes is another controller', async (t) => {
  const { stage, other } = await opened(t)
  await stage.ready('ours')
  await stage.pass(15 * minutes)
  await statusOf(other('karpenter/1.8.0'), stage, 'ours')
  assert.equal(await observing(stage), 1)
})

test('ADO-6 with --node-pools another Karpenter is recognized by claims of those NodePools, which nobody has taken', async (t) => {
  const nodePools = { selector: {}, text: '', controller: 'kube-system/tenon' }
  const { stage, other } = await opened(t, { nodePools })
  await stage.pass(minutes)
  await launchedBy(other('karpenter/1.8.0'), stage, 'theirs')
  assert.equal(await observing(stage), 1)
})

test('ADO-6 a Karpenter of another cloud, with NodePools of its own, stops nothing', async (t) => {
  const { stage, other } = await opened(t)
  await stage.pass(minutes)
  const nodeClassRef = { group: 'karpenter.k8s.aws', kind: 'EC2NodeClass', name: 'default' }
  const claim = stage.aClaim('theirs', { nodeClassRef })
  const created = other('karpenter/1.8.0').create(karpenterKinds.nodeClaim, claim)
  await stage.pass(100)
  await created
  await statusOf(other('karpenter/1.8.0'), stage, 'theirs')
  assert.equal(await observing(stage), 0)
})

test('ADO-6 a controller that was swapped out a second ago stops nothing', async (t) => {
  const { stage, other } = await opened(t)
  const before = other('karpenter/1.8.0')
  await stage.world.bury(stage.operator)
  await stage.pass(minutes)
  await launchedBy(before, stage, 'theirs')
  await statusOf(before, stage, 'theirs')
  await stage.pass(seconds)
  await stage.start()
  // Its last requests arrive late.
  await launchedBy(before, stage, 'theirs-late')
  waitingPod(stage, 'waits', { cpu: '1' })
  await stage.pass(30 * seconds)
  assert.equal(await observing(stage), 0)
  assert.ok(stage.cloud.count('create') > 0)
})

test('ADO-6 people, GitOps and an interrupted watch stop nothing', async (t) => {
  const { stage, other } = await opened(t)
  await stage.ready('ours')
  waitingPod(stage, 'waits', { cpu: '1' })
  await stage.pass(5 * minutes)
  for (const tool of ['kubectl/v1.34', 'argocd-controller/3', 'kustomize-controller/1', 'k9s/1']) {
    await statusOf(other(tool), stage, 'ours')
    const patched = other(tool).patch(
      karpenterKinds.nodePool,
      { name: 'default' },
      { metadata: { annotations: { 'example.com/by': tool } } },
    )
    await launchedBy(other('kubectl-create/v1.34'), stage, `by-hand-${tool.split('/')[0]}`)
    await patched
    await stage.pass(minutes)
  }
  await stage.restart()
  await stage.pass(3 * minutes)
  assert.equal(await observing(stage), 0)
})

test('ADO-6 after standing back, a decision from before removes no node that has taken pods since', async (t) => {
  let isRefusing = true
  const apiPath = (inner: Transport): Transport => ({
    send: (request, signal) =>
      isRefusing && request.method === 'DELETE' && request.path.includes('/nodeclaims/')
        ? Promise.reject(new Error('no route to the API server'))
        : inner.send(request, signal),
  })
  const disruption = { consolidationPolicy: 'WhenEmpty', consolidateAfter: '30s' } as const
  const stage = await openDisruption(t, { types: [aType('small', 2)], disruption, apiPath })
  const { clock } = stage.world
  const other = (userAgent: string) =>
    createKubeClient({ transport: stage.world.kubeTransport(), clock, userAgent })
  await stage.ready('ours')
  await stage.pass(2 * minutes)
  assert.deepEqual(tainted(stage), ['ours'], 'the node is about to go')
  await launchedBy(other('karpenter/1.8.0'), stage, 'theirs')
  assert.equal(await observing(stage), 1)
  isRefusing = false
  await stage.pod('new', 'node-ours')
  await stage.pass(12 * minutes)
  assert.equal(await observing(stage), 0)
  assert.ok(left(stage).includes('ours'))
})

test('ADO-6 --take-over never waits', async (t) => {
  const { stage, other } = await opened(t, { takeOver: true })
  await stage.pass(minutes)
  await launchedBy(other('karpenter/1.8.0'), stage, 'theirs')
  waitingPod(stage, 'waits', { cpu: '1' })
  await stage.pass(30 * seconds)
  assert.equal(await observing(stage), 0)
  assert.ok(stage.cloud.count('create') > 0)
})

test('ADO-6 managed fields of any shape prove nothing', () => {
  const shapes = [null, 'x', [null, 1, {}, { manager: 7 }, { manager: '__proto__', time: '1e309' }]]
  const objects = JSON.stringify(shapes.map((managedFields) => ({ metadata: { name: 'a', managedFields } })))
  const claims = JSON.parse(objects) as NodeClaim[]
  assert.equal(latestForeignWrite(claims, 0), undefined)
})

test('ADO-6 with --compatibility=karpenter nobody is looked for', async (t) => {
  const { stage, other } = await opened(t, { compatibility: 'karpenter' })
  await stage.pass(minutes)
  await launchedBy(other('karpenter/1.8.0'), stage, 'theirs')
  assert.equal(stage.operator.operator.others, undefined)
})
