/** What room costs is the same everywhere (buffers-and-dra.md 2.9, ask.md 11). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { costReport, pricedInstances } from '@tenon/ask'
import { catalogueOf } from '../testing/kwok-stage.test-support.ts'
import { snapshotOf } from '../testing/snapshot.test-support.ts'
import { minutes, type Stage } from '../testing/stage.test-support.ts'
import * as b from './buffer-stage.test-support.ts'

/** By CapacityBuffer, what `tenon cost --by owner` says. */
async function costs(stage: Stage): Promise<Readonly<Record<string, number>>> {
  const snapshot = await snapshotOf(stage)
  const { groups } = costReport(pricedInstances(snapshot), 'owner')
  return Object.fromEntries(
    groups.flatMap(({ name = '', requestedPerHour }) => {
      const buffer = /^default\/capacitybuffer\/(.+)$/.exec(name)?.[1]
      return buffer === undefined ? [] : [[buffer, requestedPerHour]]
    }),
  )
}

test('ASK-15 ASK-22 the price of room is the same in metrics, `tenon get` and `tenon cost`, also on nodes with devices', async (t) => {
  const instanceTypes = catalogueOf([
    {
      name: 'gpu.8',
      offerings: [
        {
          Price: 0.9,
          Available: true,
          Requirements: [
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
            { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['zone-a'] },
          ],
        },
      ],
      architecture: 'amd64',
      operatingSystems: ['linux'],
      resources: {
        cpu: '8',
        memory: '16Gi',
        'ephemeral-storage': '20Gi',
        pods: '110',
        'example.com/gpu': '2',
      },
    },
  ])
  const stage = await b.openBuffers(t, {}, { kwok: { instanceTypes } })
  b.deployment(stage, 'app', 1)
  b.templated(stage, 'web', 2)
  b.templated(stage, 'large', 1, b.podSpec('3'))
  await stage.pass(5 * minutes)
  const { operator } = stage.operator
  const told = operator.prices().capacityBuffers ?? []
  assert.deepEqual(
    told.map(({ name, kept, wanted }) => [name, kept, wanted]),
    [
      ['web', 2, 2],
      ['large', 1, 1],
    ],
  )
  const prices = Object.fromEntries(told.map(({ name, pricePerHour }) => [name, pricePerHour]))
  assert.deepEqual(prices, await costs(stage))
  assert.ok(Math.abs((prices['web'] ?? 0) - (0.9 * (2 / 8 + 1 / 16)) / 3) < 0.02, `${prices['web']}`)
  const scraped = await operator.metrics.registry.getSingleMetricAsString(
    'tenon_capacitybuffers_price_per_hour',
  )
  for (const [name, price] of Object.entries(prices))
    assert.match(scraped, new RegExp(`name="${name}".* ${price}$`, 'm'))
})
