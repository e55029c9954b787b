import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodeClaim, Pod } from '@tenon/api'
import type { OperatorContext } from '../../context.ts'
import { defaultSettings } from '../../settings.ts'
import { ObservedCluster } from '../../state/observed-cluster.test-support.ts'
import { RegistrationHold } from './registration-hold.ts'

const aClaim = (name: string): NodeClaim => ({
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name, uid: `uid-${name}` },
  spec: {
    requirements: [],
    nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
  },
})

/** A pod that the scheduler has refused. */
const aPod = (name: string): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'default', uid: `uid-${name}` },
  spec: { containers: [{ name: 'c', resources: { requests: { cpu: '1' } } }] },
  status: {
    phase: 'Pending',
    conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }],
  },
})

/** A decision that launched these claims, each for one pod; their Nodes have not come. */
function held(...names: readonly string[]) {
  const cluster = new ObservedCluster()
  const { clock, caches, state } = cluster
  const batch = new Set<string>()
  for (const name of names) {
    cluster.see(aClaim(name), aPod(`for-${name}`))
    state.plans.launched(name, batch)
    state.plans.set(`uid-for-${name}`, { target: { kind: 'claim', name }, steering: 'told' })
  }
  const context = { clock, caches, state, settings: defaultSettings, placementGate: { isOn: true } }
  const hold = new RegistrationHold(context as unknown as OperatorContext, () => undefined)
  return { clock, waitMs: (name: string) => hold.waitMs(aClaim(name)) }
}

test('one claim of a decision asks often, and another one takes over when it does not any more', async () => {
  const { clock, waitMs } = held('a', 'b', 'c')
  assert.deepEqual([waitMs('a'), waitMs('b'), waitMs('c')], [100, 1000, 1000])
  for (let round = 0; round < 12; round++) {
    await clock.advance(100)
    assert.equal(waitMs('a'), 100)
  }
  assert.deepEqual([waitMs('b'), waitMs('c')], [1000, 1000], 'a has asked a moment ago')
  await clock.advance(1000)
  assert.deepEqual([waitMs('b'), waitMs('c')], [100, 1000], 'a is gone')
  await clock.advance(100)
  assert.deepEqual([waitMs('a'), waitMs('b')], [1000, 100], 'it is not the one any more when it comes back')
})

test('nobody asks again later than the bound', async () => {
  const { clock, waitMs } = held('a', 'b')
  assert.deepEqual([waitMs('a'), waitMs('b')], [100, 1000])
  await clock.advance(defaultSettings.nominationHoldMs - 50)
  assert.deepEqual([waitMs('a'), waitMs('b')], [50, 50])
  await clock.advance(50)
  assert.deepEqual([waitMs('a'), waitMs('b')], [0, 0])
})
