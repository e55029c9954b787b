import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { InstanceType, NodePool } from '@tenon/api'
import type { CloudProvider } from '@tenon/provider'
import { type LogFields, silentLogger } from '@tenon/runtime'
import { checkedPrices } from './checked-prices.ts'

const aType = (name: string, ...prices: readonly number[]): InstanceType => ({
  name,
  requirements: [],
  offerings: prices.map((pricePerHour) => ({ requirements: [], pricePerHour, available: true })),
  capacity: {},
  overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
})

const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default' },
  spec: {
    template: {
      spec: { nodeClassRef: { group: 'example.com', kind: 'Class', name: 'x' }, requirements: [] },
    },
  },
}

test('RPT-28 what a catalogue says that is no price is not known, and told once', async () => {
  const sound = aType('sound', 0, 0.5, 1e9)
  const broken = aType('broken', 1, Number.NaN, Number.POSITIVE_INFINITY, -1, 2e9)
  const told: LogFields[] = []
  const provider: Pick<CloudProvider, 'getInstanceTypes'> = {
    getInstanceTypes: () => Promise.resolve([sound, broken]),
  }
  const logger = { ...silentLogger, error: (_: string, fields: LogFields = {}) => told.push(fields) }
  const checked = checkedPrices(provider, logger)
  const [first, second] = await checked.getInstanceTypes(pool)
  assert.equal(first, sound)
  assert.deepEqual(
    second?.offerings.map(({ pricePerHour }) => pricePerHour),
    [1, undefined, undefined, undefined, undefined],
  )
  assert.equal((await checked.getInstanceTypes(pool))[1], second)
  assert.deepEqual(
    told.map((fields) => [fields['instance-type'], fields['prices']]),
    [['broken', 'NaN, Infinity, -1, 2000000000']],
  )
})
