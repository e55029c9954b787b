import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalQuantity, formatResource, isQuantity, parseResource, quantityText } from './quantity.ts'

test('cpu is counted in thousandths of a core, rounded up', () => {
  assert.equal(parseResource('cpu', '1'), 1000)
  assert.equal(parseResource('cpu', '250m'), 250)
  assert.equal(parseResource('cpu', '1.5'), 1500)
  assert.equal(parseResource('cpu', '100u'), 1)
  assert.equal(parseResource('cpu', '2e1'), 20000)
})

test('memory is counted in bytes for binary and decimal suffixes', () => {
  assert.equal(parseResource('memory', '1Ki'), 1024)
  assert.equal(parseResource('memory', '1.5Gi'), 1610612736)
  assert.equal(parseResource('memory', '128M'), 128000000)
  assert.equal(parseResource('memory', '100m'), 1)
  assert.equal(parseResource('memory', '12E'), 12e18)
})

test('text that is not a quantity is refused', () => {
  for (const text of ['', '1m5', '5 Gi', 'abc', '1.2.3', '--1', '1e999999999', '5ki', '5mi'])
    assert.equal(isQuantity(text), false, text)
  assert.throws(() => parseResource('memory', 'lots'), /"lots" is not a Kubernetes quantity/)
})

test('amounts print as the shortest exact quantity', () => {
  assert.equal(formatResource('cpu', 1500), '1500m')
  assert.equal(formatResource('cpu', 2000), '2')
  assert.equal(formatResource('memory', 4 * 1024 ** 3), '4Gi')
  assert.equal(formatResource('memory', 1000), '1000')
  assert.equal(formatResource('memory', 0), '0')
  assert.equal(formatResource('pods', 110), '110')
})

test('the API server stores amounts in canonical form', () => {
  const amounts = ['0.5', '1024Mi', '1000m', '1.5Gi', '2e3', '100', '0', '1500m', '-1', 'abc']
  assert.deepEqual(amounts.map(canonicalQuantity), [
    '500m',
    '1Gi',
    '1',
    '1536Mi',
    '2e3',
    '100',
    '0',
    '1500m',
    '-1',
    'abc',
  ])
})

test('billionths are printed in the largest unit without a fraction', () => {
  assert.equal(quantityText(1_500_000_000n, 'decimal'), '1500m')
  assert.equal(quantityText(2048_000_000_000n, 'binary'), '2Ki')
  assert.equal(quantityText(1n, 'binary'), '1n')
})
