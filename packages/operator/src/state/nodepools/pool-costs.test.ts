/** What NodePools cost, with the prices that are read for them. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type InstanceType, labels, type NodeClaim, type NodePool, type PricePerHour } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { type LogFields, silentLogger } from '@tenon/runtime'
import { poolPricing } from '../../nodepool/pricing.ts'
import { Metrics } from '../../metrics/metrics.ts'
import { aClaim, aPool } from '../nodes/nodes.test-support.ts'
import { nodeClassKind, ObservedCluster } from '../observed-cluster.test-support.ts'

const { signal } = new AbortController()
const is = (key: string, ...values: string[]) => ({ key, operator: 'In' as const, values })

/** A type with one spot offering in `zone-1`. */
function aType(pricePerHour: PricePerHour, name = 'medium', available = true): InstanceType {
  return {
    name,
    requirements: [],
    offerings: [
      {
        requirements: [is(labels.zone, 'zone-1'), is(labels.capacityType, 'spot')],
        pricePerHour,
        available,
      },
    ],
    capacity: {},
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
}

const full = {
  [labels.instanceType]: 'medium',
  [labels.zone]: 'zone-1',
  [labels.capacityType]: 'spot',
}

function bought(name: string, changes: Readonly<Record<string, string>> = {}, pool = 'default'): NodeClaim {
  return aClaim(name, { pool, labels: { ...full, ...changes } })
}

/** A cluster with NodePools `default` and `other`; prices are read whenever something happens. */
function shop(...types: readonly InstanceType[]) {
  const cluster = new ObservedCluster()
  const metrics = new Metrics({ clock: cluster.clock })
  const errors: LogFields[] = []
  const catalogue: {
    types: readonly InstanceType[]
    list: (pool: NodePool) => readonly InstanceType[]
  } = { types, list: () => catalogue.types }
  const provider = {
    nodeClasses: [nodeClassKind],
    getInstanceTypes: async (pool: NodePool) => await Promise.resolve(catalogue.list(pool)),
  }
  const { caches, state } = cluster
  const logger = { ...silentLogger, warn: (_: string, fields: LogFields = {}) => errors.push(fields) }
  const [pricing, hourly] = poolPricing(caches, state, provider, metrics, logger)
  cluster.see(aPool(), aPool('other'))
  const see = async (...claims: readonly NodeClaim[]) => {
    cluster.see(...claims)
    for (const pool of ['default', 'other']) await pricing.reconcile(pool, signal)
  }
  const failures = async () => (await metrics.nodePoolCostErrors.get()).values.map(({ value }) => value)
  return {
    cluster,
    catalogue,
    pricing,
    errors,
    failures,
    see,
    cost: (pool = 'default') => cluster.state.poolCosts.of(pool).pricePerHour,
    unpriced: (pool = 'default') => cluster.state.poolCosts.of(pool).unpriced,
    refresh: () => hourly.run(signal),
  }
}

describe('what NodePools cost', () => {
  test('STA-61 each claim costs what its offering costs, until it is gone', async () => {
    const { cluster, catalogue, see, cost } = shop(aType(1.5))
    await see(bought('a'), bought('b'))
    assert.equal(cost(), 3)
    cluster.state.mark('p://a')
    assert.equal(cost(), 3)
    cluster.miss(bought('a'))
    assert.equal(cost(), 1.5)
    cluster.miss(bought('b'))
    assert.equal(cost(), 0)
    // Nothing is remembered of what is had no more, its price included.
    catalogue.types = [aType(9)]
    await see(bought('c'))
    assert.equal(cost(), 9)
  })

  test('STA-62 a claim without zone counts as soon as it has one', async () => {
    const { errors, failures, see, cost } = shop(aType(1.5))
    await see(bought('a', { [labels.zone]: '' }))
    assert.equal(cost(), 0)
    await see(bought('a'))
    assert.equal(cost(), 1.5)
    assert.deepEqual([errors, await failures()], [[], []])
  })

  test('STA-63 with new prices the cost is theirs, what is sold no longer keeps its price', async () => {
    const { catalogue, see, cost, refresh } = shop(aType(1.5), aType(4, 'large'))
    await see(bought('a'), bought('b'), bought('c', { [labels.instanceType]: 'large' }))
    assert.equal(cost(), 7)
    catalogue.types = [aType(2.5, 'medium', false)]
    assert.equal(cost(), 7)
    assert.deepEqual(await refresh(), { kind: 'after', delayMs: 3_600_000 })
    assert.equal(cost(), 9)
  })

  test('STA-65 an offering that was given up and bought again counts once', async () => {
    const { cluster, see, cost, refresh } = shop(aType(1.5))
    await see(bought('a'))
    cluster.miss(bought('a'))
    await see(bought('b'))
    assert.equal(cost(), 1.5)
    await refresh()
    assert.equal(cost(), 1.5)
  })

  test('STA-66 with a NodePool goes its cost, claims that follow it change nothing', async () => {
    const { cluster, errors, failures, see, cost } = shop(aType(1.5))
    await see(bought('a'), bought('b'), bought('c', {}, 'other'))
    cluster.miss(aPool())
    assert.deepEqual([cost(), cost('other')], [0, 1.5])
    await see(bought('a', { changed: 'true' }))
    cluster.miss(bought('a'))
    cluster.miss(bought('b'))
    assert.deepEqual([cost(), cost('other')], [0, 1.5])
    assert.deepEqual([errors, await failures()], [[], []])
  })

  test('RPT-28 what has no price is counted apart, and told once', async () => {
    const { catalogue, errors, see, cost, unpriced, refresh } = shop(aType(undefined), aType(3, 'large'))
    await see(bought('a'))
    await see(bought('b'), bought('c', { [labels.instanceType]: 'large' }))
    assert.deepEqual([cost(), unpriced()], [3, 2])
    assert.equal(errors.length, 1)
    catalogue.types = [aType(2)]
    await refresh()
    assert.deepEqual([cost(), unpriced()], [7, 0])
  })

  test('a pool whose types cannot be listed keeps its prices, the others get theirs', async () => {
    const { catalogue, failures, see, cost, refresh } = shop(aType(1))
    await see(bought('a'), bought('b', {}, 'other'))
    catalogue.list = ({ metadata }) => {
      if (metadata.name === 'default') throw new ProviderError('other', 'the catalogue is down')
      return [aType(2)]
    }
    await assert.rejects(refresh(), /NodePool default: the catalogue is down/)
    assert.deepEqual([cost(), cost('other')], [1, 2])
    assert.deepEqual(await failures(), [1])
  })
})
