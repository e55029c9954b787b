import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, karpenterKinds, labels } from '@tenon/api'
import { aType } from '../testing/pools.test-support.ts'
import { hours, minutes, intercepting, seconds, Stage } from '../testing/stage.test-support.ts'

const reservation = 'example.com/reservation'

const nodeClassRef = { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' }
const linux = { key: labels.os, operator: 'In', values: ['linux'] } as const
const anyCapacity = { spec: { nodeClassRef, requirements: [linux] } }
/** Drifted nodes stay to be looked at. */
const kept = { consolidateAfter: 'Never', budgets: [{ nodes: '0' }] }

/** The type with offerings of these capacity types in its zone. */
function offering(type: InstanceType, ...capacityTypes: readonly string[]): InstanceType {
  return {
    ...type,
    offerings: capacityTypes.map((capacityType) => ({
      requirements: [
        { key: labels.zone, operator: 'In', values: ['zone-1'] },
        { key: labels.capacityType, operator: 'In', values: [capacityType] },
        ...(capacityType === 'reserved'
          ? [{ key: reservation, operator: 'In' as const, values: ['another'] }]
          : []),
      ],
      pricePerHour: 1,
      available: false,
    })),
  }
}

test('LIF-125 a claim of two hours whose type is not offered has drifted, a young one is not checked', async (t) => {
  const stage = await Stage.open(t, { pool: { disruption: kept } })
  stage.cloud.instanceTypes = [aType('small', 2)]
  await stage.ready('old')
  await stage.ready('unlabelled')
  stage.patch(karpenterKinds.nodeClaim, 'unlabelled', {
    metadata: { labels: { [labels.instanceType]: null } },
  })
  await stage.pass(30 * minutes)
  await stage.ready('young')
  await stage.pass(45 * minutes)
  const states = () => ['old', 'unlabelled', 'young'].map((name) => stage.state(name, 'Drifted'))
  assert.deepEqual(states(), ['True/InstanceTypeNotFound', 'True/InstanceTypeNotFound', 'absent'])
  await stage.pass(45 * minutes)
  assert.equal(stage.state('young', 'Drifted'), 'True/InstanceTypeNotFound')
  // An offering that is sold out is an offering; one elsewhere is none.
  stage.cloud.instanceTypes = [offering(aType('medium', 4), 'on-demand')]
  await stage.pass(6 * minutes)
  assert.deepEqual(states(), ['absent', 'True/InstanceTypeNotFound', 'absent'])
  stage.cloud.instanceTypes = [aType('medium', 4, ['zone-2'])]
  await stage.pass(36 * minutes)
  assert.equal(stage.state('old', 'Drifted'), 'True/InstanceTypeNotFound')
})

test('a type that was found is not looked for again for half an hour', async (t) => {
  const stage = await Stage.open(t, { pool: { disruption: kept } })
  stage.cloud.instanceTypes = [aType('medium', 4)]
  await stage.ready('a')
  await stage.pass(hours + 6 * minutes)
  stage.cloud.instanceTypes = []
  await stage.pass(20 * minutes)
  assert.equal(stage.state('a', 'Drifted'), 'absent')
  await stage.pass(20 * minutes)
  assert.equal(stage.state('a', 'Drifted'), 'True/InstanceTypeNotFound')
})

test('LIF-126 a reserved instance stays while its type is sold reserved or on demand', async (t) => {
  const drifted: string[] = []
  const listings = [['reserved'], ['on-demand'], ['spot'], []]
  for (const capacityTypes of listings) {
    const stage = await Stage.open(t, { idle: true, pool: { template: anyCapacity, disruption: kept } })
    Object.assign(stage.cloud, { reservationLabel: reservation })
    stage.cloud.extras = {
      labels: {
        [labels.instanceType]: 'medium',
        [labels.zone]: 'zone-1',
        [labels.capacityType]: 'reserved',
        [reservation]: 'own',
      },
    }
    stage.cloud.instanceTypes = [offering(aType('medium', 4), ...capacityTypes)]
    await stage.start()
    await stage.ready('a')
    await stage.pass(2 * hours)
    drifted.push(stage.state('a', 'Drifted'))
  }
  assert.deepEqual(drifted, ['absent', 'absent', 'True/InstanceTypeNotFound', 'True/InstanceTypeNotFound'])
})

test('a catalogue that cannot be read changes nothing and holds nothing else up', async (t) => {
  const stage = await Stage.open(t, {
    pool: { disruption: { consolidateAfter: '2h', budgets: [{ nodes: '0' }] } },
  })
  stage.cloud.onIsDrifted = () => 'CloudReason'
  await stage.ready('a')
  stage.cloud.getInstanceTypes = () => Promise.reject(new Error('down'))
  await stage.pass(2 * hours + minutes)
  assert.equal(stage.state('a', 'Drifted'), 'True/CloudReason')
  assert.equal(stage.state('a', 'Consolidatable'), 'True/Consolidatable')
})

test('LIF-132 claims of a static pool drift, and are never consolidatable', async (t) => {
  const stage = await Stage.open(t, {
    pool: { replicas: 0, disruption: { consolidateAfter: '0s', budgets: [{ nodes: '0' }] } },
  })
  stage.cloud.onIsDrifted = () => 'CloudReason'
  await stage.ready('a')
  await stage.pass(10 * minutes)
  assert.equal(stage.state('a', 'Drifted'), 'True/CloudReason')
  assert.equal(stage.state('a', 'Consolidatable'), 'absent')
})

test('LIF-133 both conditions come in one write and go in one', async (t) => {
  const written: string[] = []
  const apiPath = intercepting((method, path, body) => {
    if (method === 'PATCH' && path.includes('/nodeclaims/a/status')) {
      const { status } = JSON.parse(body) as { status: { conditions?: readonly { type: string }[] } }
      const types = new Set((status.conditions ?? []).map(({ type }) => type))
      written.push(['Drifted', 'Consolidatable'].filter((type) => types.has(type)).join('+'))
    }
    return 'pass'
  })
  const stage = await Stage.open(t, {
    apiPath,
    pool: { disruption: { consolidateAfter: '30s', budgets: [{ nodes: '0' }] } },
  })
  await stage.ready('a')
  await stage.pass(20 * seconds)
  written.length = 0
  stage.cloud.onIsDrifted = () => 'CloudReason'
  await stage.pass(15 * seconds)
  assert.deepEqual(written, ['Drifted+Consolidatable'])
  stage.cloud.onIsDrifted = () => undefined
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { disruption: { consolidateAfter: 'Never' } } })
  await stage.pass(15 * seconds)
  assert.deepEqual(written, ['Drifted+Consolidatable', ''])
})

test('what a NodePool counts makes no claim ask the cloud, what it asks for does', async (t) => {
  const stage = await Stage.open(t, { pool: { disruption: kept } })
  await stage.ready('a')
  await stage.pass(30 * seconds)
  let asked = 0
  stage.cloud.onIsDrifted = () => {
    asked++
    return undefined
  }
  const { local } = stage.world.cluster.server
  local.patch(karpenterKinds.nodePool, undefined, 'default', { status: { nodes: 7 } }, 'status')
  await stage.pass(15 * seconds)
  assert.equal(asked, 0)
  stage.patch(karpenterKinds.nodePool, 'default', { spec: { weight: 7 } })
  await stage.pass(15 * seconds)
  assert.equal(asked, 1)
})
