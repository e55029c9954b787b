import assert from 'node:assert/strict'
import { test } from 'node:test'
import { amountText, csvField, elided, percentText, priceText, sumText } from './format.ts'

test('CON-5 a sum tells how many prices are not known, and nothing known is no 0', () => {
  assert.equal(sumText(1.5, 0), '1.5000')
  assert.equal(sumText(1.5, 2), '1.5000 ?2')
  assert.equal(sumText(undefined, 3), '?3')
})

test('a percentage of nothing, or of something unknown, is none', () => {
  assert.equal(percentText(1, 0), '-')
  assert.equal(percentText(undefined, 2), '-')
  assert.equal(percentText(1, 3), '33%')
})

test('long names keep their beginning and the suffix that tells them apart', () => {
  assert.equal(elided('standard-with-a-long-name-x7k2p', 16), 'standard…e-x7k2p')
  assert.equal(elided('short', 16), 'short')
})

test('amounts are in cores and binary units', () => {
  assert.equal(amountText('cpu', 1500), '1.5')
  assert.equal(amountText('memory', 3 * 1024 ** 3), '3Gi')
  assert.equal(amountText('pods', undefined), '?')
})

test('a field of a CSV file is no formula, and keeps commas and quotes', () => {
  assert.equal(csvField('=HYPERLINK("x")'), `"'=HYPERLINK(""x"")"`)
  assert.equal(csvField('a,b'), '"a,b"')
  assert.equal(csvField(-1), '-1')
})

test('CON-11 halves of the last digit go up, as in tenon cost, whatever the binary fraction', () => {
  assert.deepEqual(
    [priceText(1.21335), sumText(1.0050000001, 0, 2), priceText(0.1 + 0.2), priceText(2.00004999)],
    ['1.2134', '1.01', '0.3000', '2.0000'],
  )
})
