/** Documents and monitoring name the metrics that there are. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { CleverMetrics } from './metrics.ts'

const root = resolve(import.meta.dirname, '../../..')
const own = new Map(new CleverMetrics().all().map((metric) => [metric.name, metric.type]))

function namesIn(text: string): ReadonlySet<string> {
  return new Set(Array.from(text.matchAll(/\bkarpenter_clevercloud_[a-z]\w*/g), ([name]) => name))
}

test('the page of metrics lists each with its type, and no other', () => {
  const page = readFileSync(join(root, 'docs/clever-cloud/observability.md'), 'utf8')
  const rows = [...page.matchAll(/^\| `(karpenter_clevercloud_\w+)` \| (\w+) \|/gm)]
  assert.deepEqual(Object.fromEntries(rows.map(([, name, type]) => [name, type])), Object.fromEntries(own))
})

test('alerts, dashboard and documents name no metric that there is not', () => {
  const files = [
    'monitoring/prometheus/clever-cloud.yaml',
    'monitoring/prometheus/clever-cloud.test.yaml',
    'monitoring/grafana/tenon-clever-cloud.json',
    'docs/clever-cloud/quota-and-cost.md',
    'docs/clever-cloud/troubleshooting.md',
  ]
  for (const file of files) {
    const names = namesIn(readFileSync(join(root, file), 'utf8'))
    assert.ok(names.size > 0, file)
    for (const name of names) assert.ok(own.has(name), `${file} names ${name}`)
  }
})
