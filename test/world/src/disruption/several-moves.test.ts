/** Moves of the global search that have nothing to do with each other begin in one pass. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels } from '@tenon/api'
import { minutes, seconds } from '../testing/stage.test-support.ts'
import { aType, madeClaims } from '../testing/pools.test-support.ts'
import { setDisruption, tainted } from './disruption-stage.test-support.ts'
import { asking, Fleet, priced } from './fleet-stage.test-support.ts'

const zones = ['zone-1', 'zone-2']
const six = aType('six', 6, zones)
const large = priced(aType('large', 8, zones), 0.5)
/** More than are packed again as one group. */
const names = Array.from({ length: 24 }, (_, at) => `n${at}`)

test('nodes that are exchanged for cheaper ones go at once, as many as the budget allows', async (t) => {
  const fleet = await Fleet.open(t, { types: [six, large] })
  const { stage } = fleet
  await fleet.nodes(Object.fromEntries(names.map((name) => [name, large])))
  const spec = asking({ cpu: '4500m' })
  const pinned = { ...spec, nodeSelector: { [labels.zone]: 'zone-1' } }
  // With pods that may go to different zones there is no cheapest state of all nodes together.
  fleet.workload(
    'some',
    names.slice(0, 12).map((name) => `node-${name}`),
    spec,
  )
  fleet.workload(
    'others',
    names.slice(12).map((name) => `node-${name}`),
    pinned,
  )
  await stage.pass(10 * seconds)
  assert.deepEqual(fleet.notRunning(), [])
  const before = fleet.pricePerHour()
  setDisruption(stage, { consolidateAfter: '0s', budgets: [{ nodes: '20' }] })
  await stage.world.clock.advanceUntil(() => tainted(stage).length > 0, 2 * minutes)
  await stage.pass(1 * seconds)
  assert.equal(tainted(stage).length, 20)
  assert.equal(madeClaims(stage).length, 20)
  const isDone = () => fleet.pricePerHour() <= 24 * 0.3 + 1e-9 && fleet.notRunning().length === 0
  assert.ok(await stage.world.clock.advanceUntil(isDone, 60 * minutes))
  assert.ok(fleet.pricePerHour() < before)
  assert.equal(madeClaims(stage).length, 24, 'no node was launched but those that were planned')
})
