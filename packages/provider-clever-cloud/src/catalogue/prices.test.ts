import assert from 'node:assert/strict'
import { test } from 'node:test'
import { builtInFlavors } from './flavors.ts'
import { listedPrice, priceInEuros, relativePrice } from './prices.ts'

test('CLV-56 the rates of the price list give the prices that Clever Cloud publishes', () => {
  assert.deepEqual(
    builtInFlavors.map(({ name }) => [name, listedPrice(name)]),
    [
      ['2XS', 0.0333],
      ['XS', 0.0611],
      ['S', 0.0889],
      ['M', 0.1167],
      ['L', 0.1667],
      ['XL', 0.2222],
    ],
  )
})

test('a flavor that is not on the price list has no known price', () => {
  for (const name of ['CUSTOM', '', 'constructor', '__proto__', 'm'])
    assert.equal(listedPrice(name), undefined)
})

test('prices are rounded at four decimals, halves away from zero', () => {
  assert.equal(priceInEuros(0, 0), 0)
  const costing = (cpu: number) =>
    relativePrice({ name: 'x', cpu, memoryKi: 0 }, { name: 'y', cpu: 32, memoryKi: 1 })
  // 1/32 is 0.03125 to the last digit, in decimals and in binary.
  assert.equal(costing(3), 0.0313)
  assert.equal(costing(2.999), 0.0312)
})

test('relative prices of the flavors as earlier node images had them', () => {
  const sizes = [
    { name: '2XS', cpu: 4, memoryKi: 3_911_884 },
    { name: 'XS', cpu: 6, memoryKi: 7_937_580 },
    { name: 'S', cpu: 8, memoryKi: 11_957_148 },
    { name: 'M', cpu: 10, memoryKi: 15_988_992 },
    { name: 'L', cpu: 12, memoryKi: 23_983_488 },
    { name: 'XL', cpu: 16, memoryKi: 31_977_984 },
  ] as const
  assert.deepEqual(
    sizes.map((size) => relativePrice(size, sizes[0])),
    [1, 1.8527, 2.7044, 3.5582, 5.0873, 6.783],
  )
})
