import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type NewClaim, schedule } from '@tenon/engine'
import { silentLogger } from '@tenon/runtime'
import { aWaitingPod, gathered, readyPool } from '../state/deciding.test-support.ts'
import { aClaim, aNode } from '../state/nodes/nodes.test-support.ts'
import { ObservedCluster } from '../state/observed-cluster.test-support.ts'
import { poolWithinLimits, reserveLimits } from './claim-reservations.ts'

const withLimits = (limits: Readonly<Record<string, string>>) => ({
  ...readyPool,
  spec: { ...readyPool.spec, limits },
})

/** A cluster in which a claim of 16 cores was decided, and what reserves its share of the limits. */
async function decidedCluster(limits: Readonly<Record<string, string>> = { cpu: '20' }) {
  const cluster = new ObservedCluster()
  cluster.see(withLimits(limits), aWaitingPod('waiting', { containers: [{ name: 'app' }] }))
  const { claims } = schedule(await gathered(cluster))
  const [claim] = claims
  assert.ok(claim !== undefined && claims.length === 1)
  const pools = { caches: cluster.caches, state: cluster.state, logger: silentLogger }
  return { cluster, claim, pools }
}

/** Why claims are not created any more. */
const reasons = (pools: Parameters<typeof reserveLimits>[0], claims: readonly NewClaim[]) =>
  reserveLimits(pools, claims).overtaken.map(({ by }) => by)

test('a claim of a NodePool that is gone by then is overtaken', async () => {
  const { cluster, claim, pools } = await decidedCluster()
  cluster.miss(readyPool)
  assert.deepEqual(reasons(pools, [claim]), [{ kind: 'poolGone', nodePool: 'default' }])
})

test('a claim is overtaken when a node that came meanwhile leaves too little below the limit', async () => {
  const { cluster, claim, pools } = await decidedCluster()
  cluster.see(aNode('a', { providerID: 'a', pool: 'default' }), aClaim('a', { providerID: 'a' }))
  assert.deepEqual(reserveLimits(pools, [claim]).reserved.length, 1, '4 and 16 of the 20 cores')
  const { cluster: other, claim: late, pools: few } = await decidedCluster({ cpu: '16' })
  other.see(aNode('a', { providerID: 'a', pool: 'default' }), aClaim('a', { providerID: 'a' }))
  assert.deepEqual(reasons(few, [late]), [{ kind: 'limitReached', nodePool: 'default', limit: 'cpu' }])
})

test('where a claim on its way has reserved the rest, the pods wait: nothing is overtaken', async () => {
  const { cluster, claim, pools } = await decidedCluster()
  const freed: string[] = []
  cluster.state.limitReservations.freed.add((pool) => freed.push(pool))
  const [first] = reserveLimits(pools, [claim]).reserved
  assert.ok(first !== undefined)
  assert.deepEqual(reserveLimits(pools, [claim]), { reserved: [], overtaken: [] })
  cluster.state.limitReservations.giveBack(first.reservation)
  assert.deepEqual(freed, ['default'], 'who waits is told')
})

test('a limit that was lowered below what there is stops a claim, and gives its reservation back', async () => {
  const { cluster, claim, pools } = await decidedCluster()
  cluster.see(aNode('a', { providerID: 'a', pool: 'default' }), aClaim('a', { providerID: 'a' }))
  const [reserved] = reserveLimits(pools, [claim]).reserved
  assert.ok(reserved !== undefined)
  assert.equal(poolWithinLimits(pools, reserved).kind, 'within')
  cluster.see(withLimits({ cpu: '2' }))
  assert.deepEqual(poolWithinLimits(pools, reserved), {
    kind: 'limitExceeded',
    nodePool: 'default',
    limit: 'cpu',
  })
  assert.equal(cluster.state.limitReservations.want('default'), false, 'nothing is reserved any more')
})
