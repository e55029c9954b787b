import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, karpenterKinds, kinds, labels, nodePoolHash } from '@tenon/api'
import { aType, madeClaims, waitingPod } from '../testing/pools.test-support.ts'
import type { WorldOptions } from '../world.ts'
import { hours, minutes, seconds, Stage } from '../testing/stage.test-support.ts'

type ApiPath = NonNullable<WorldOptions['apiPath']>

const nodeClassLabel = 'karpenter.kwok.sh/kwoknodeclass'

test('LIF-106 an expired claim is counted with the pods that need another place', async (t) => {
  const stage = await Stage.open(t)
  await stage.ready('a', { expireAfter: '1h', terminationGracePeriod: '1h' })
  await stage.pod('one', 'node-a')
  await stage.pod('two', 'node-a', { annotations: { [annotations.doNotDisrupt]: 'true' } })
  await stage.pod('over', 'node-a', { status: { phase: 'Succeeded' } })
  await stage.pod('daemon', 'node-a', { ownerReferences: [await stage.daemonSet('agent')] })
  const series = {
    reason: 'expired',
    nodepool: 'default',
    capacity_type: 'on-demand',
    consolidation_policy: '',
    termination_mode: 'eventual',
  }
  await stage.pass(hours - minutes)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', series), 0)
  await stage.pass(minutes)
  assert.notEqual(stage.claimNow('a')?.metadata.deletionTimestamp, undefined)
  assert.equal(await stage.metric('nodeclaims_disrupted_total', series), 1)
  assert.equal(await stage.metric('pods_disruption_initiated_total', series), 2)
})

test('LIF-134 claims and Nodes get the label of their node class, those of others do not', async (t) => {
  const stage = await Stage.open(t, { idle: true })
  const { metadata, ...own } = stage.aClaim('own')
  const { [nodeClassLabel]: _, ...tags } = metadata.labels ?? {}
  stage.world.create(karpenterKinds.nodeClaim, { ...own, metadata: { ...metadata, labels: tags } })
  const nodeClassRef = { group: 'other.io', kind: 'Other', name: 'x' }
  stage.world.create(karpenterKinds.nodeClaim, {
    ...own,
    metadata: { name: 'foreign', labels: tags },
    spec: { ...own.spec, nodeClassRef },
  })
  for (const name of ['own', 'foreign']) {
    const providerID = `fake://${name}`
    stage.patch(karpenterKinds.nodeClaim, name, { status: { providerID } }, 'status')
    // Without the taint: nobody has registered it, nobody will.
    await stage.join(name, { labels: { [labels.registered]: 'true' }, taints: [] })
  }
  await stage.start()
  assert.equal(stage.claimNow('own')?.metadata.labels?.[nodeClassLabel], 'default')
  assert.equal(stage.nodeNow('node-own')?.metadata.labels?.[nodeClassLabel], 'default')
  assert.deepEqual(stage.claimNow('foreign')?.metadata.labels, tags)
  assert.deepEqual(Object.keys(stage.nodeNow('node-foreign')?.metadata.labels ?? {}), [labels.registered])
  stage.patch(kinds.node, 'node-own', { metadata: { labels: { [nodeClassLabel]: null } } })
  await stage.pass(seconds)
  assert.equal(stage.nodeNow('node-own')?.metadata.labels?.[nodeClassLabel], 'default')
})

test('LIF-149 a claim that went before anybody saw it holds decisions up for 15 s only', async (t) => {
  const posted: number[] = []
  // The claim is deleted at once, and the answer is late: watches have told of its end by then.
  const apiPath: ApiPath = (inner) => ({
    send: async (request, signal) => {
      const isClaim = request.method === 'POST' && request.path.endsWith('/nodeclaims')
      const response = await inner.send(request, signal)
      if (!isClaim) return response
      posted.push(stage.now)
      if (posted.length > 1) return response
      for (const { metadata } of madeClaims(stage)) stage.delete(karpenterKinds.nodeClaim, metadata.name)
      await stage.world.clock.sleep(seconds)
      return response
    },
  })
  const stage = await Stage.open(t, { apiPath })
  stage.cloud.instanceTypes = [aType('medium', 4)]
  waitingPod(stage, 'p')
  await stage.pass(14 * seconds)
  assert.equal(posted.length, 1)
  assert.equal(await stage.metric('cluster_state_synced'), 0)
  await stage.pass(6 * seconds)
  assert.equal(await stage.metric('cluster_state_synced'), 1)
  assert.deepEqual([posted.length, madeClaims(stage).length, stage.cloud.instances.length], [2, 1, 1])
  assert.ok((posted[1] ?? 0) - (posted[0] ?? 0) >= 15 * seconds)
})

test('LIF-152 a claim that becomes a node while garbage is looked for is not garbage', async (t) => {
  const stage = await Stage.open(t)
  const { clock } = stage.world
  const names = ['before', 'after']
  const joined: string[] = []
  // The instances are listed slowly: a node joins before the list is taken, another before it arrives.
  stage.cloud.onList = async () => {
    const name = names[joined.length]
    if (name === undefined) return
    joined.push(name)
    stage.world.create(karpenterKinds.nodeClaim, stage.aClaim(name))
    await clock.sleep(5 * seconds)
    stage.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name: `node-${name}` },
      spec: { providerID: `fake://${name}` },
    })
    await clock.sleep(5 * seconds)
  }
  await stage.pass(3 * minutes)
  assert.deepEqual(joined, names)
  for (const name of names) {
    assert.equal(stage.state(name, 'Registered'), 'True/Registered')
    assert.equal(stage.claimNow(name)?.metadata.deletionTimestamp, undefined)
  }
  assert.equal(await stage.metric('nodeclaims_disrupted_total'), 0)
})

test('LIF-153 the grace period of the cloud is on the claim, and is no drift', async (t) => {
  const stage = await Stage.open(t)
  Object.assign(stage.cloud, { defaultTerminationGracePeriodMs: 5 * minutes })
  stage.cloud.instanceTypes = [aType('medium', 4)]
  stage.cloud.extras = {
    labels: {
      [labels.os]: 'linux',
      [labels.zone]: 'zone-1',
      [labels.instanceType]: 'medium',
      [labels.capacityType]: 'on-demand',
    },
  }
  const hash = () => stage.poolNow()?.metadata.annotations?.[annotations.nodePoolHash]
  const before = hash()
  waitingPod(stage, 'p')
  await stage.pass(5 * seconds)
  const [claim] = madeClaims(stage)
  assert.equal(claim?.spec.terminationGracePeriod, '5m0s')
  const { name } = claim.metadata
  await stage.join(name)
  await stage.report(`node-${name}`)
  await stage.pass(10 * minutes)
  const pool = stage.poolNow()
  assert.deepEqual([hash(), pool && nodePoolHash(pool)], [before, before])
  assert.equal(claim.metadata.annotations?.[annotations.nodePoolHash], before)
  assert.equal(stage.state(name, 'Drifted'), 'absent')
})

test('LIF-155 a pod that ends while it waits for its eviction is forgotten without a word', async (t) => {
  let evictions = 0
  const apiPath: ApiPath = (inner) => ({
    send: async (request, signal) => {
      if (request.path.endsWith('/eviction')) evictions++
      return await inner.send(request, signal)
    },
  })
  const stage = await Stage.open(t, { apiPath })
  const held = { [annotations.doNotDisrupt]: 'true' }
  await stage.ready('a', { terminationGracePeriod: '1h' })
  await stage.pod('p', 'node-a', { annotations: held })
  // Holds the node, so that the drain is not over with the pod.
  await stage.pod('q', 'node-a', { annotations: held })
  await stage.deleteClaim('a')
  await stage.pass(minutes)
  stage.patch(kinds.pod, 'p', { status: { phase: 'Succeeded' } }, 'status', 'default')
  await stage.pass(20 * seconds)
  stage.patch(
    kinds.pod,
    'p',
    { metadata: { annotations: { [annotations.doNotDisrupt]: null } } },
    undefined,
    'default',
  )
  await stage.pass(5 * minutes)
  assert.equal(evictions, 0)
  assert.ok(!stage.isLeaving('p'))
  for (const reason of ['Evicted', 'Disrupted']) assert.deepEqual(stage.events(reason), [])
  assert.equal(await stage.metric('pods_drained_total'), 0)
  assert.equal(await stage.metric('pods_eviction_requests_total'), 0)
  // What is over stays over when the node's time is up: only the pod that still waits is deleted.
  await stage.pass(hours)
  assert.deepEqual(
    stage.events('Disrupted').map(({ object }) => object),
    ['Pod/q'],
  )
})
