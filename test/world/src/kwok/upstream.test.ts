/** What upstream-style suites ask of a cluster of simulated nodes, on virtual time (operations.md 13.2). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, karpenterKinds, kinds, labels, type NodeClaim } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { rfc3339 } from '@tenon/runtime'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import { aDeployment, aKwokPool, deploymentKind } from '../world.ts'
import { configure, is, launch, openKwok, turnReady } from '../testing/kwok-stage.test-support.ts'

const onDemand = is(labels.capacityType, 'on-demand')
const small = ['c-1x-amd64-linux']
const still = { disruption: { consolidateAfter: 'Never', budgets: [{ nodes: '100%' }] } }

test('OPS-80 a node that is told not ready for 31 minutes is replaced at once, though it heals in a moment', async (t) => {
  const settings = {
    featureGates: { ...defaultSettings.featureGates, nodeRepair: true },
    compatibility: 'karpenter',
  } as const
  const stage = await openKwok(t, { settings, pool: still })
  stage.world.create(deploymentKind, aDeployment('app', 1))
  await stage.pass(minutes)
  const [sick] = stage.world.nodes()
  assert.ok(sick)
  turnReady(stage, sick.metadata.name, 'False', stage.now - 31 * minutes)
  turnReady(stage, sick.metadata.name, 'True', stage.now)
  await stage.pass(minutes)
  assert.equal(stage.nodeNow(sick.metadata.name), undefined)
  const replacements = stage.world.nodes()
  assert.equal(replacements.length, 1)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', { reason: 'unhealthy' }), 1)
  assert.ok(stage.world.pods().some(({ spec }) => spec.nodeName === replacements[0]?.metadata.name))
})

test('OPS-83 while others taint every new node NoExecute, there are fewer than 35 within 5 minutes', async (t) => {
  const disruption = {
    consolidationPolicy: 'WhenEmpty',
    consolidateAfter: '30s',
    budgets: [{ nodes: '100%' }],
  } as const
  const stage = await openKwok(t, { pool: { disruption } })
  configure(stage, { nodeRegistrationDelay: '12s' })
  let most = 0
  let made = 0
  stage.world.cluster.server.local.subscribe(kinds.node, {
    added: ({ metadata }) => {
      const taints = [
        ...(stage.nodeNow(metadata.name)?.spec?.taints ?? []),
        { key: 'example.com/unwanted', value: 'yes', effect: 'NoExecute' as const },
      ]
      stage.patch(kinds.node, metadata.name, { spec: { taints } })
      made++
      most = Math.max(most, stage.world.nodes().length)
    },
  })
  stage.world.create(deploymentKind, aDeployment('app', 1))
  await stage.pass(5 * minutes)
  assert.ok(made >= 2 && made <= 10, `the pod is chased over ${made} nodes`)
  assert.ok(most < 35, `there were ${most} nodes at once`)
})

test('OPS-88 drift of a pool’s labels shows within 5 s on 100 pods, and is over after 10 minutes', async (t) => {
  const stage = await openKwok(t, { pool: still })
  stage.world.create(deploymentKind, aDeployment('app', 100, { cpu: '950m', memory: '512Mi' }))
  await stage.pass(2 * minutes)
  const isRunning = () => stage.world.pods().every(({ status }) => status?.phase === 'Running')
  assert.equal(stage.world.pods().length, 100)
  assert.ok(isRunning())
  const before = new Set(stage.world.claims().map(({ metadata }) => metadata.name))
  const { template } = aKwokPool().spec
  stage.patch(karpenterKinds.nodePool, 'default', {
    spec: { template: { ...template, metadata: { labels: { 'example.com/new': 'yes' } } } },
  })
  await stage.pass(5 * seconds)
  const drifted = () =>
    stage.world.claims().filter((claim) => conditionOf(claim, 'Drifted')?.status === 'True')
  assert.ok(drifted().length > 0)
  await stage.pass(10 * minutes)
  assert.deepEqual(drifted(), [])
  const after = stage.world.claims()
  assert.ok(after.every(({ metadata }) => !before.has(metadata.name)))
  assert.ok(after.every(({ metadata }) => metadata.labels?.['example.com/new'] === 'yes'))
  assert.ok(isRunning())
})

test('OPS-89 a claim whose status is made to name an instance of nobody is collected', async (t) => {
  const stage = await openKwok(t)
  await launch(stage, 'one', small, onDemand)
  await launch(stage, 'other', small, onDemand)
  await stage.pass(30 * seconds)
  const conditions = (stage.claimNow('one') as NodeClaim).status?.conditions?.map((condition) => ({
    ...condition,
    status: 'True',
    reason: condition.type,
    message: '',
    lastTransitionTime: rfc3339(stage.now),
  }))
  stage.patch(
    karpenterKinds.nodeClaim,
    'one',
    { status: { providerID: 'unknown://nobody', conditions } },
    'status',
  )
  await stage.pass(5 * minutes)
  assert.equal(stage.claimNow('one'), undefined)
  assert.ok(stage.claimNow('other'))
})
