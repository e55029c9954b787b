import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type NodeClaim, type NodePool, parseResources } from '@tenon/api'
import { aPool } from '../nodes/nodes.test-support.ts'
import { ObservedCluster } from '../observed-cluster.test-support.ts'

const pool = (limits: Readonly<Record<string, string>>, name = 'default'): NodePool => {
  const { spec, ...rest } = aPool(name)
  return { ...rest, spec: { ...spec, limits } }
}
const usage = parseResources({ cpu: '4', nodes: '1' })
const largest = parseResources({ cpu: '4', nodes: '1' })

function aClaim(status: NodeClaim['status'] = {}): NodeClaim {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: { name: 'one', uid: 'one', labels: { 'karpenter.sh/nodepool': 'default' } },
    spec: {
      nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'default' },
      requirements: [],
    },
    status,
  }
}

test('what is on its way takes room below the limits, until its instance counts by itself', () => {
  const cluster = new ObservedCluster()
  const { limitReservations } = cluster.state
  const ask = { pool: pool({ cpu: '10' }), usage, largest, quotas: [] }
  const room = limitReservations.take(ask)
  assert.ok(!('kind' in room))
  assert.deepEqual(
    limitReservations.take(ask),
    { kind: 'limit', resource: 'cpu' },
    'another decision, made from the same usage',
  )
  assert.ok(!('kind' in limitReservations.take({ ...ask, pool: pool({ cpu: '10' }, 'other') })))
  limitReservations.follow(room, 'one')
  cluster.see(aClaim())
  assert.deepEqual(limitReservations.take(ask), { kind: 'limit', resource: 'cpu' }, 'not launched yet')
  cluster.see(aClaim({ providerID: 'fake://one', capacity: { cpu: '2' } }))
  assert.ok(!('kind' in limitReservations.take(ask)), 'it is part of the usage from now on')
})

test('room is given back when nothing comes', () => {
  const cluster = new ObservedCluster()
  const { limitReservations } = cluster.state
  const ask = { pool: pool({ nodes: '2' }), usage, largest, quotas: [] }
  const room = limitReservations.take(ask)
  assert.ok(!('kind' in room))
  assert.deepEqual(limitReservations.take(ask), { kind: 'limit', resource: 'nodes' })
  limitReservations.giveBack(room)
  const again = limitReservations.take(ask)
  assert.ok(!('kind' in again))
  limitReservations.follow(again, 'one')
  cluster.state.dropSeed('one')
  assert.ok(!('kind' in limitReservations.take(ask)))
})

test('who wants room is told once, when any of it is given back', () => {
  const cluster = new ObservedCluster()
  const { limitReservations } = cluster.state
  const told: string[] = []
  limitReservations.freed.add((name) => told.push(name))
  assert.equal(limitReservations.want('default'), false, 'nobody has taken any')
  const [first, second] = [1, 2].map(() =>
    limitReservations.take({ pool: pool({ cpu: '20' }), usage, largest, quotas: [] }),
  )
  assert.ok(first !== undefined && !('kind' in first))
  assert.ok(second !== undefined && !('kind' in second))
  assert.equal(limitReservations.want('other'), false)
  assert.equal(limitReservations.want('default'), true)
  limitReservations.giveBack(first)
  limitReservations.giveBack(first)
  limitReservations.giveBack(second)
  assert.deepEqual(told, ['default'])
  assert.equal(limitReservations.want('default'), false)
})
