import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseResources } from '@tenon/api'
import { aWaitingPod, gathered, readyPool } from '../../cluster/deciding.test-support.ts'
import { ObservedCluster } from '../../cluster/observed-cluster.test-support.ts'
import { workloadOf } from '../../cluster/pods/workloads.ts'

const limits = { cpu: '20' }
const pool = { ...readyPool, spec: { ...readyPool.spec, limits } }

/** A pod of a ReplicaSet. */
const replica = (name: string, owner: string) =>
  aWaitingPod(
    name,
    {},
    {
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true },
      ],
    },
  )

test('a decision is told what claims on their way have reserved of the limits', async () => {
  const cluster = new ObservedCluster()
  cluster.see(pool, aWaitingPod('waiting'))
  const largest = parseResources({ cpu: '16' })
  cluster.state.limitReservations.take({ pool, usage: {}, largest })
  assert.deepEqual(
    (await gathered(cluster)).pools.map(({ reserved }) => reserved),
    [largest],
  )
})

test('a decision is told which pods have nodes that may yet take them, by workload', async () => {
  const cluster = new ObservedCluster()
  const pods = [replica('a-1', 'a'), replica('a-2', 'a'), replica('b-1', 'b')]
  cluster.see(pool, ...pods)
  assert.equal((await gathered(cluster)).podsOnTrial, undefined)
  const [first] = pods
  assert.ok(first !== undefined)
  const { podsOnTrial } = await gathered(cluster, { onTrial: new Map([[workloadOf(first), 1]]) })
  assert.deepEqual(podsOnTrial, [{ uids: new Set(['uid-a-1', 'uid-a-2']), nodesFor: 1 }])
})
