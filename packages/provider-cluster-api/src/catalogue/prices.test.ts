import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, readPriceFile } from '@tenon/api'
import { aParticipant, names } from '../testing/deployments.test-support.ts'
import { priceText } from './prices.ts'

const listed = { pricesPerHour: new Map([['m.large', 0.3]]) }
const named = { nodeLabels: { [labels.instanceType]: 'm.large', [labels.zone]: 'a' } }

test('CAP-85 the annotation tells the price', () => {
  const participant = aParticipant({ ...named, annotations: { [names.price]: '0.50' } }, { prices: listed })
  assert.equal(participant.pricePerHour, 0.5)
  assert.deepEqual(participant.warnings, [])
})

test('CAP-85 an annotation that is no price makes it unknown, not zero, with a warning', () => {
  for (const text of ['', 'cheap', '-1', '0,5', '1e3', '5000000000']) {
    const participant = aParticipant({ ...named, annotations: { [names.price]: text } }, { prices: listed })
    assert.equal(participant.pricePerHour, undefined)
    assert.match(participant.warnings.join(), /machine-current-price is ".*"; use|its price is unknown/)
  }
})

test('without the annotation the file tells the price by instance type; else it is not known', () => {
  assert.equal(aParticipant(named, { prices: listed }).pricePerHour, 0.3)
  assert.equal(aParticipant({}, { prices: listed }).pricePerHour, undefined)
})

test('both forms of the file, numbers and decimal texts', () => {
  const prices = [
    ['a', 0.25],
    ['b', 1],
  ] as const
  assert.deepEqual(readPriceFile('{"a": 0.25, "b": "1.00"}').ok, { pricesPerHour: new Map(prices) })
  assert.deepEqual(readPriceFile('{"currency": "EUR", "prices": {"a": "0.25", "b": 1}}').ok, {
    currency: 'EUR',
    pricesPerHour: new Map(prices),
  })
  assert.deepEqual(readPriceFile('{}').ok, { pricesPerHour: new Map() })
  // A type may be called like the field.
  assert.deepEqual(readPriceFile('{"prices": 2}').ok, { pricesPerHour: new Map([['prices', 2]]) })
})

for (const [text, error] of [
  ['{"a": 1', /^the file is not JSON: SyntaxError: .* write \{/],
  ['[1]', /^the file contains no object; use \{"currency"/],
  ['{"a": true}', /^a: is true; write a price from 0 to 1000000000, such as 0\.25/],
  ['{"a": -1}', /^a: is -1; write a price/],
  ['{"a": "1,5"}', /^a: is "1,5"; write a price/],
  ['{"": 1}', /not a valid name of an instance type/],
  ['{"prices": {"a": {}}}', /^prices\.a: is \{\}; write a price/],
  ['{"currency": "Euro", "prices": {}}', /^currency: must be three capital letters, such as EUR/],
  ['{"unit": "h", "prices": {}}', /^unit: is unknown; only currency and prices/],
] as const)
  test(`a file that is wrong is refused as a whole: ${text}`, () => {
    const { ok, error: told } = readPriceFile(text)
    assert.equal(ok, undefined)
    assert.match(told ?? '', error)
  })

test('prices are shown with their currency', () => {
  assert.equal(priceText(0.25, { currency: 'EUR', pricesPerHour: new Map() }), '0.25 EUR')
  assert.equal(priceText(2, { pricesPerHour: new Map() }), '2')
})
