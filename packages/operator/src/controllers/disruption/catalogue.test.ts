import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, labels } from '@tenon/api'
import { nodePrice } from './catalogue.ts'

function sold(...prices: readonly number[]): InstanceType {
  const is = (key: string, value: string) => ({ key, operator: 'In' as const, values: [value] })
  return {
    name: 'medium',
    requirements: [],
    offerings: prices.map((pricePerHour, zone) => ({
      requirements: [is(labels.zone, `zone-${zone}`), is(labels.capacityType, 'on-demand')],
      pricePerHour,
      available: false,
    })),
    capacity: {},
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
}

const of = (zone: number) => ({
  [labels.zone]: `zone-${zone}`,
  [labels.capacityType]: 'on-demand',
})

test('DIS-35 a price that is no number counts as nothing', () => {
  assert.equal(nodePrice(sold(Number.NaN), of(0)), 0)
})

test('a node costs what the offering of its zone and capacity type does, sold out or not', () => {
  const type = sold(0.5, 0.7)
  assert.equal(nodePrice(type, of(1)), 0.7)
  assert.equal(nodePrice(type, of(2)), 0)
  assert.equal(nodePrice(type, { ...of(1), [labels.capacityType]: 'spot' }), 0)
  assert.equal(nodePrice(type, { [labels.zone]: 'zone-1' }), 0)
  assert.equal(nodePrice(undefined, of(1)), 0)
})
