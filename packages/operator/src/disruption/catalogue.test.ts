import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type InstanceType, labels, type PricePerHour } from '@tenon/api'
import { nodePrice } from './catalogue.ts'

function sold(...prices: readonly PricePerHour[]): InstanceType {
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

test('RPT-28 DIS-35 a price that is not known is not 0', () => {
  assert.equal(nodePrice(sold(undefined), of(0)), undefined)
})

test('a node costs what the offering of its zone and capacity type does, sold out or not', () => {
  const type = sold(0.5, 0.7)
  assert.equal(nodePrice(type, of(1)), 0.7)
  assert.equal(nodePrice(type, of(2)), undefined)
  assert.equal(nodePrice(type, { ...of(1), [labels.capacityType]: 'spot' }), undefined)
  assert.equal(nodePrice(type, { [labels.zone]: 'zone-1' }), undefined)
  assert.equal(nodePrice(undefined, of(1)), undefined)
})
