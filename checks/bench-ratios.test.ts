/** The table that `npm run bench:ratios` prints. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measureAges, ratioTable, referenceMs } from '../bench/scheduling/ratios.ts'

test('SCA-17 decisions in young and warm processes are compared with the time of the reference', () => {
  const ages = measureAges(60, 'planned', 2)
  assert.ok(ages.youngMs > 0 && ages.warmMs > 0)
  const [head, , line = ''] = ratioTable([{ pods: 60, improvement: 'planned', ...ages }])
  assert.equal(head, '| pods | plan | reference | young process | warm process |')
  const found = /^\| 60 \| planned \| 74 ms \| ([\d.]+) ms, (\d+)× \| ([\d.]+) ms, (\d+)× \|$/.exec(line)
  assert.ok(found, line)
  const [, youngMs, young, , warm] = found.map(Number)
  assert.ok(Math.abs(74 / (youngMs ?? 0) - (young ?? 0)) <= 1, line)
  assert.ok((warm ?? 0) >= 0)
  assert.equal(referenceMs(1000), 2580)
})
