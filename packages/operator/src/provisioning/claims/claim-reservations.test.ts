import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type NewClaim, schedule } from '@tenon/engine'
import { silentLogger } from '@tenon/runtime'
import { aWaitingPod, gathered, readyPool } from '../../state/deciding.test-support.ts'
import { aClaim, aNode } from '../../state/nodes/nodes.test-support.ts'
import { ObservedCluster } from '../../state/observed-cluster.test-support.ts'
import { ClaimReservations } from './claim-reservations.ts'

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
  const pools = { pool: (name: string) => cluster.caches.nodePools.get({ name }) }
  const reservations = new ClaimReservations({
    plannedClaims: pools,
    state: cluster.state,
    logger: silentLogger,
  })
  return { cluster, claim, reservations }
}

/** Why claims are not created any more. */
const reasons = (reservations: ClaimReservations, claims: readonly NewClaim[]) =>
  reservations.reserve(claims).overtaken.map(({ by }) => by)

test('a claim of a NodePool that is gone by then is overtaken', async () => {
  const { cluster, claim, reservations } = await decidedCluster()
  cluster.miss(readyPool)
  assert.deepEqual(reasons(reservations, [claim]), [{ kind: 'poolGone', nodePool: 'default' }])
})

test('a claim is overtaken when a node that came meanwhile leaves too little below the limit', async () => {
  const { cluster, claim, reservations } = await decidedCluster()
  cluster.see(aNode('a', { providerID: 'a', pool: 'default' }), aClaim('a', { providerID: 'a' }))
  assert.deepEqual(reservations.reserve([claim]).reserved.length, 1, '4 and 16 of the 20 cores')
  const { cluster: other, claim: late, reservations: few } = await decidedCluster({ cpu: '16' })
  other.see(aNode('a', { providerID: 'a', pool: 'default' }), aClaim('a', { providerID: 'a' }))
  assert.deepEqual(reasons(few, [late]), [{ kind: 'limitReached', nodePool: 'default', limit: 'cpu' }])
})

test('where a claim on its way has reserved the rest, the pods wait: nothing is overtaken', async () => {
  const { cluster, claim, reservations } = await decidedCluster()
  const freed: string[] = []
  cluster.state.limitReservations.freed.add((pool) => freed.push(pool))
  const [first] = reservations.reserve([claim]).reserved
  assert.ok(first !== undefined)
  assert.deepEqual(reservations.reserve([claim]), { reserved: [], overtaken: [] })
  cluster.state.limitReservations.giveBack(first.reservation)
  assert.deepEqual(freed, ['default'], 'who waits is told')
})

test('a limit that was lowered below what there is stops a claim, and gives its reservation back', async () => {
  const { cluster, claim, reservations } = await decidedCluster()
  cluster.see(aNode('a', { providerID: 'a', pool: 'default' }), aClaim('a', { providerID: 'a' }))
  const [reserved] = reservations.reserve([claim]).reserved
  assert.ok(reserved !== undefined)
  assert.equal(reservations.poolWithin(reserved).kind, 'within')
  cluster.see(withLimits({ cpu: '2' }))
  assert.deepEqual(reservations.poolWithin(reserved), {
    kind: 'limitExceeded',
    nodePool: 'default',
    limit: 'cpu',
  })
  assert.equal(cluster.state.limitReservations.want('default'), false, 'nothing is reserved any more')
})
