/** When the state is complete enough to decide, and what is told about it. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type NodeClaim } from '@tenon/api'
import { type LogFields, silentLogger } from '@tenon/runtime'
import { nodeClaimSeedCheck, seedCheckMs } from '../nodeclaim/seed-check.ts'
import { reportSync } from '../metrics/waiting.ts'
import { Metrics } from '../metrics/metrics.ts'
import { aClaim, aNode } from './nodes/nodes.test-support.ts'
import { ObservedCluster } from './observed-cluster.test-support.ts'

const unlaunched = aClaim('unlaunched')
const launched = aClaim('launched', { providerID: 'p://1' })
const halfNode = aNode('half', { labels: { [labels.nodePool]: 'default' } })

/** A cluster whose answers are shown, with what the metrics say. */
function shown() {
  const cluster = new ObservedCluster()
  const metrics = new Metrics({ clock: cluster.clock })
  const errors: LogFields[] = []
  const logger = { ...silentLogger, error: (_: string, fields: LogFields = {}) => errors.push(fields) }
  reportSync({ clock: cluster.clock, state: cluster.state, metrics, logger })
  const gauge = async (name: string) => {
    const metric = await metrics.registry.getSingleMetric(`karpenter_cluster_state_${name}`)?.get()
    return metric?.values[0]?.value
  }
  return { cluster, errors, gauge }
}

describe('synced', () => {
  test('STA-9 a claim that came and went before its launch leaves nothing behind', () => {
    const { state, see, miss } = bound(new ObservedCluster())
    see(unlaunched)
    assert.equal(state.synced(), false)
    miss(unlaunched)
    assert.equal(state.synced(), true)
    state.seed(unlaunched)
    assert.equal(state.synced(), false)
    see(unlaunched)
    miss(unlaunched)
    assert.equal(state.synced(), true)
  })

  test('STA-10 a claim without provider ID keeps decisions back, at any time', () => {
    const { state, see } = bound(new ObservedCluster())
    assert.equal(state.synced(), true)
    see(unlaunched)
    assert.equal(state.synced(), false)
    see(aClaim('unlaunched', { providerID: 'p://1' }))
    assert.equal(state.synced(), true)
  })

  test('STA-12 a node that does not say what it is keeps decisions back until they were possible once', () => {
    const { state, see, miss } = bound(new ObservedCluster())
    see(halfNode)
    assert.equal(state.synced(), false)
    assert.equal(state.hasSynced, false)
    see(aNode('half', { providerID: 'p://1', pool: 'default' }))
    assert.equal(state.synced(), true)
    miss(halfNode)
    see(halfNode)
    assert.equal(state.synced(), true)
    assert.equal(state.hasSynced, true)
  })

  test('STA-11 metrics tell of a thousand nodes that are all known', async () => {
    const { cluster, gauge } = shown()
    for (let i = 0; i < 1000; i++)
      cluster.see(aNode(`node-${i}`, { providerID: `p://${i}`, pool: 'default' }))
    assert.equal(cluster.state.synced(), true)
    assert.deepEqual(
      [await gauge('node_count'), await gauge('unsynced_time_seconds'), await gauge('synced')],
      [1000, 0, 1],
    )
  })

  test('STA-13 metrics tell how long decisions have been kept back, and so does the log', async () => {
    const { cluster, errors, gauge } = shown()
    cluster.see(unlaunched)
    for (let second = 0; second <= 120; second++) {
      cluster.state.synced()
      await cluster.clock.advance(1000)
    }
    cluster.state.synced()
    assert.ok(Number(await gauge('unsynced_time_seconds')) >= 120)
    assert.equal(await gauge('synced'), 0)
    // After half a minute, and then every ten seconds.
    assert.equal(errors.length, 10)
    assert.deepEqual(errors[0], { duration: '31s', waitingFor: 'nodeclaim/unlaunched' })
    cluster.miss(unlaunched)
    cluster.state.synced()
    assert.equal(await gauge('unsynced_time_seconds'), 0)
  })
})

describe('the check of claims that no cache has shown', () => {
  function check({ state }: ObservedCluster, inApi: NodeClaim | undefined) {
    const client = { get: (): Promise<never> => Promise.resolve(inApi as never) }
    return nodeClaimSeedCheck(client, state, silentLogger)
  }
  const { signal } = new AbortController()

  test('STA-14 one that is gone from the API is forgotten', async () => {
    const cluster = new ObservedCluster()
    const due: string[] = []
    cluster.state.seeds.add((name) => {
      due.push(name)
    })
    cluster.see(unlaunched)
    cluster.miss(unlaunched)
    cluster.state.seed(unlaunched)
    assert.equal(cluster.state.synced(), false)
    assert.deepEqual([due, seedCheckMs], [['unlaunched'], 15_000])
    await check(cluster, undefined).reconcile('unlaunched', signal)
    assert.equal(cluster.state.synced(), true)
  })

  test('STA-15 one that exists stays, and is checked again', async () => {
    const cluster = new ObservedCluster()
    cluster.state.seed(unlaunched)
    const result = await check(cluster, unlaunched).reconcile('unlaunched', signal)
    assert.deepEqual(result, { kind: 'after', delayMs: seedCheckMs })
    assert.equal(cluster.state.synced(), false)
    cluster.see(unlaunched)
    await check(cluster, unlaunched).reconcile('unlaunched', signal)
    assert.deepEqual(cluster.state.unlaunched(), [unlaunched])
  })

  test('STA-16 one that is launched stays until its cache says otherwise', async () => {
    const cluster = new ObservedCluster()
    cluster.state.seed(aClaim('launched'))
    cluster.see(launched)
    await check(cluster, undefined).reconcile('launched', signal)
    assert.deepEqual(
      cluster.state.stateNodes().map(({ claim }) => claim),
      [launched],
    )
  })
})

function bound(cluster: ObservedCluster) {
  return {
    state: cluster.state,
    see: cluster.see.bind(cluster),
    miss: cluster.miss.bind(cluster),
  }
}
