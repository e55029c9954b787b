import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseResources } from '@tenon/api'
import { aWaitingPod, gathered, readyPool } from '../../state/deciding.test-support.ts'
import { ObservedCluster } from '../../state/observed-cluster.test-support.ts'

const limits = { cpu: '20' }
const pool = { ...readyPool, spec: { ...readyPool.spec, limits } }

test('a decision is told what claims on their way have reserved of the limits', async () => {
  const cluster = new ObservedCluster()
  cluster.see(pool, aWaitingPod('waiting'))
  const largest = parseResources({ cpu: '16' })
  cluster.state.limitReservations.take({ pool, usage: {}, largest, quotas: [] })
  assert.deepEqual(
    (await gathered(cluster)).pools.map(({ reserved }) => reserved),
    [largest],
  )
})
