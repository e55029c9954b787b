import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ClusterApiMetrics } from './metrics.ts'

test('the reference page has every metric of the provider, and no other', () => {
  const page = readFileSync(new URL('../../../docs/metrics.md', import.meta.url), 'utf8')
  const told = page.split('\n').filter((line) => line.startsWith('- `karpenter_clusterapi_'))
  const measured = new ClusterApiMetrics(() => true).all()
  assert.deepEqual(
    told.map((line) => /^- `(.*)`, an? (.*?): (.*?)(, else 0)?\.$/.exec(line)?.slice(1, 4)),
    measured.map(({ name, type, help }) => [name, type, help.replace(/\.$/, '')]),
  )
})
