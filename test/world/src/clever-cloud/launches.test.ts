/** From pending pods to nodes of Clever Cloud and back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isConditionTrue, karpenterKinds, kinds, labels } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { cleverNodeClassKind, type NodeGroup, nodeGroupKind, ownNames } from '@tenon/provider-clever-cloud'
import { deploymentKind } from '../world.ts'
import { aPool, CleverStage, minutes, plenty, seconds } from './stage.test-support.ts'

const isReady = (group: NodeGroup): boolean => isConditionTrue(group, 'Ready')

test('pods get nodes, and the nodes go with them', async (t) => {
  const stage = await CleverStage.open(t)
  stage.deploy('web', 3, { cpu: '1', memory: '1500Mi' })
  assert.ok(await stage.until(() => stage.allRun(3), 5 * minutes))
  const [claim] = stage.world.claims()
  const node = stage.nodes().find(({ spec }) => spec?.providerID === claim?.status?.providerID)
  assert.equal(node?.metadata.name, `${claim?.metadata.name}-node0`)
  assert.equal(node.metadata.labels?.[labels.zone], 'par')
  assert.equal(node.metadata.labels[labels.nodePool], 'default')
  stage.world.scale('web', 0)
  assert.ok(
    await stage.until(() => stage.groups().length === 0 && stage.world.claims().length === 0, 10 * minutes),
  )
  assert.equal(stage.nodes().length, 0)
})

test('CLV-94 a pod that selects the region gets exactly one node', async (t) => {
  const stage = await CleverStage.open(t)
  stage.world.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'one', namespace: 'default' },
    spec: {
      nodeSelector: { 'topology.kubernetes.io/region': 'par' },
      containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu: '1' } } }],
    },
  })
  assert.ok(await stage.until(() => stage.allRun(1), 5 * minutes))
  await stage.pass(10 * minutes)
  assert.equal(stage.groups().length, 1)
})

test('CLV-93 CLV-17 CLV-18 CLV-19 what the quota refuses is held out, the rest launches at once', async (t) => {
  const stage = await CleverStage.open(t, {
    pool: aPool(['2XS', 'XS', 'S', 'M', 'L', 'XL'], { disruption: { consolidateAfter: 'Never' } }),
    // The control plane has 24 of each.
    cleverCloud: { settings: { quota: { cpu: 34, memoryGb: 34 } } },
  })
  const refusals = () => stage.eventCount('NodeGroupQuotaExceeded')
  stage.deploy('large', 1, { cpu: '1', memory: '20Gi' })
  assert.ok(await stage.until(() => refusals() === 1, minutes))
  const refusedMs = stage.world.clock.now()
  stage.deploy('small', 1, { cpu: '1', memory: '1Gi' })
  assert.ok(await stage.until(() => stage.groups().some(({ spec }) => spec.flavor === '2XS'), 20 * seconds))
  await stage.until(() => false, refusedMs + 55 * seconds - stage.world.clock.now())
  assert.equal(refusals(), 1, 'what is held out is not asked for again before its time')
  assert.ok(await stage.until(() => refusals() === 2, 2 * minutes))
  stage.platform.settings.quota = plenty
  const claim = stage.world.claims().find(({ spec }) => spec.resources?.requests?.['memory'] !== '20Gi')
  stage.world.cluster.server.local.delete(karpenterKinds.nodeClaim, undefined, claim?.metadata.name ?? '')
  const releasedMs = stage.world.clock.now()
  assert.ok(await stage.until(() => stage.flavors().includes('L'), 2 * minutes))
  assert.ok(stage.world.clock.now() - releasedMs < 40 * seconds, 'what is given back is used at once')
})

test('CLV-90 a pool that the quota does not allow leaves nothing behind', async (t) => {
  const stage = await CleverStage.open(t, { pool: aPool(['XL']) })
  stage.deploy('web', 4, { cpu: '12', memory: '1Gi' })
  await stage.pass(5 * minutes)
  assert.ok(stage.eventCount('NodeGroupQuotaExceeded') >= 1)
  assert.ok(stage.world.pods().some(({ status }) => status?.phase === 'Pending'))
  stage.world.cluster.server.local.delete(deploymentKind, 'default', 'web')
  assert.ok(
    await stage.until(() => stage.groups().length === 0 && stage.world.claims().length === 0, 12 * minutes),
  )
})

test('CLV-88 with NodeRepair a node that is not ready for ten minutes is replaced', async (t) => {
  const featureGates = { ...defaultSettings.featureGates, nodeRepair: true }
  const stage = await CleverStage.open(t, { settings: { featureGates } })
  stage.platform.faults.groups.add({ effect: { kind: 'neverReady' }, times: 1 })
  stage.deploy('web', 1)
  assert.ok(await stage.until(() => stage.nodes().length === 1, 2 * minutes))
  const [sick] = stage.groups()
  assert.ok(await stage.until(() => stage.allRun(1), 20 * minutes))
  assert.ok(stage.groups().every(({ metadata }) => metadata.name !== sick?.metadata.name))
})

test('CLV-89 a change of labels of the class rolls the nodes', async (t) => {
  const stage = await CleverStage.open(t)
  stage.deploy('web', 2, { cpu: '3', memory: '1Gi' })
  assert.ok(await stage.until(() => stage.allRun(2), 5 * minutes))
  const before = new Set(stage.groups().map(({ metadata }) => metadata.name))
  stage.world.cluster.server.local.patch(cleverNodeClassKind, undefined, 'default', {
    spec: { labels: { team: 'data' } },
  })
  const hasRolled = () =>
    stage.groups().length > 0 &&
    stage.groups().every(({ metadata }) => !before.has(metadata.name)) &&
    stage.allRun(2)
  assert.ok(await stage.until(hasRolled, 15 * minutes))
  // The operator asks every five seconds whether the instance of a claim is gone.
  await stage.pass(5 * seconds)
  for (const { spec } of stage.groups()) assert.equal(spec.labels?.['team'], 'data')
  for (const { metadata } of stage.nodes()) assert.equal(metadata.labels?.['team'], 'data')
  assert.ok(stage.groups().every(({ metadata }) => metadata.labels?.[ownNames.managed] === 'true'))
  assert.equal(stage.world.cluster.server.local.list(karpenterKinds.nodeClaim).length, stage.groups().length)
})

test('200 claims at once are accepted within seconds, none waits for its node', async (t) => {
  const stage = await CleverStage.open(t, { cleverCloud: { settings: { quota: plenty } } })
  const created = new Map<string, number>()
  const accepted: number[] = []
  const { local } = stage.world.cluster.server
  local.subscribe(nodeGroupKind, {
    added: ({ metadata: { name } }) => created.set(name, stage.world.clock.now()),
  })
  local.subscribe(karpenterKinds.nodeClaim, {
    updated: (claim, old) => {
      if (!isConditionTrue(claim, 'Launched') || isConditionTrue(old, 'Launched')) return
      accepted.push(stage.world.clock.now() - (created.get(claim.metadata.name) ?? 0))
    },
  })
  stage.deploy('web', 200, { cpu: '8', memory: '1Gi' })
  const startMs = stage.world.clock.now()
  assert.ok(await stage.until(() => accepted.length === 200, 5 * minutes))
  const inOrder = accepted.toSorted((a, b) => a - b)
  t.diagnostic(
    `accepted after ${inOrder[100]} ms in the median, ${inOrder[199]} at most; all after ${stage.world.clock.now() - startMs}`,
  )
  assert.ok((inOrder[100] ?? 0) < 5 * seconds)
  assert.ok((inOrder[199] ?? 0) < 15 * seconds)
  assert.equal(stage.eventCount('NodeGroupAcceptanceTimeout'), 0)
  assert.equal(created.size, 200)
})

test('with one flavor out of quota the rest launch at once, at the price of five refusals at most', async (t) => {
  const stage = await CleverStage.open(t, {
    pool: aPool(['XS', 'S', 'M']),
    cleverCloud: { settings: { quota: plenty } },
  })
  const effect = { kind: 'rejectByQuota', tells: 'phase' } as const
  stage.platform.faults.groups.add({ flavor: 'M', effect })
  stage.deploy('large', 50, { cpu: '9', memory: '1Gi' })
  stage.deploy('small', 150, { cpu: '5', memory: '1Gi' })
  const startMs = stage.world.clock.now()
  const small = () => stage.groups().filter(({ spec }) => spec.flavor === 'XS').length
  assert.ok(await stage.until(() => small() === 150, 5 * minutes))
  const tookMs = stage.world.clock.now() - startMs
  t.diagnostic(`150 groups after ${tookMs} ms, ${stage.eventCount('NodeGroupQuotaExceeded')} refusals`)
  assert.ok(tookMs < 60 * seconds)
  assert.ok(stage.eventCount('NodeGroupQuotaExceeded') <= 5)
})

test('what the quota has room for is filled within minutes, also by many pods at once', async (t) => {
  const stage = await CleverStage.open(t, { cleverCloud: { settings: { quota: { cpu: 40, memoryGb: 40 } } } })
  stage.deploy('web', 60, { cpu: '900m', memory: '512Mi' })
  const startMs = stage.world.clock.now()
  const { limit } = stage.platform.quota()
  const isFull = () => limit.cpu - stage.platform.quota().used.cpu < 4 && stage.groups().every(isReady)
  assert.ok(await stage.until(isFull, 10 * minutes))
  t.diagnostic(
    `full after ${(stage.world.clock.now() - startMs) / 1000} s with ${stage.flavors().join()}, ${stage.eventCount('NodeGroupQuotaExceeded')} refusals`,
  )
})
