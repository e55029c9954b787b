import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type NodeClaim, type NodePool, parseResources } from '@tenon/api'
import { ObservedCluster } from '../observed-cluster.test-support.ts'

const pool = (limits: Readonly<Record<string, string>>, name = 'default') =>
  ({ kind: karpenterKinds.nodePool.kind, metadata: { name }, spec: { limits } }) as unknown as NodePool
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

test('what is on its way takes room below the limits, until its machine counts by itself', () => {
  const cluster = new ObservedCluster()
  const { poolRoom } = cluster.state
  const ask = { pool: pool({ cpu: '10' }), usage, largest }
  const room = poolRoom.take(ask)
  assert.ok(typeof room !== 'string')
  assert.equal(poolRoom.take(ask), 'cpu', 'another decision, made from the same usage')
  assert.notEqual(poolRoom.take({ ...ask, pool: pool({ cpu: '10' }, 'other') }), 'cpu')
  poolRoom.follow(room, 'one')
  cluster.see(aClaim())
  assert.equal(poolRoom.take(ask), 'cpu', 'not launched yet')
  cluster.see(aClaim({ providerID: 'fake://one', capacity: { cpu: '2' } }))
  assert.ok(typeof poolRoom.take(ask) !== 'string', 'it is part of the usage from now on')
})

test('room is given back when nothing comes', () => {
  const cluster = new ObservedCluster()
  const { poolRoom } = cluster.state
  const ask = { pool: pool({ nodes: '2' }), usage, largest }
  const room = poolRoom.take(ask)
  assert.ok(typeof room !== 'string')
  assert.equal(poolRoom.take(ask), 'nodes')
  poolRoom.giveBack(room)
  const again = poolRoom.take(ask)
  assert.ok(typeof again !== 'string')
  poolRoom.follow(again, 'one')
  cluster.state.dropSeed('one')
  assert.ok(typeof poolRoom.take(ask) !== 'string')
})

test('who wants room is told once, when any of it is given back', () => {
  const cluster = new ObservedCluster()
  const { poolRoom } = cluster.state
  const told: string[] = []
  poolRoom.freed.add((name) => told.push(name))
  assert.equal(poolRoom.want('default'), false, 'nobody has taken any')
  const [first, second] = [1, 2].map(() => poolRoom.take({ pool: pool({ cpu: '20' }), usage, largest }))
  assert.ok(first !== undefined && typeof first !== 'string')
  assert.ok(second !== undefined && typeof second !== 'string')
  assert.equal(poolRoom.want('other'), false)
  assert.equal(poolRoom.want('default'), true)
  poolRoom.giveBack(first)
  poolRoom.giveBack(first)
  poolRoom.giveBack(second)
  assert.deepEqual(told, ['default'])
  assert.equal(poolRoom.want('default'), false)
})
