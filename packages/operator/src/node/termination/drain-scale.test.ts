/** What a pass over a large drain costs. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodDisruptionBudget } from '@tenon/api'
import { BudgetIndex, drainReport, drainSummary } from './drain-report.ts'

const now = Date.parse('2026-01-01T00:10:00Z')

function pods(count: number): readonly Pod[] {
  return Array.from({ length: count }, (_, i) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `web-${i}`,
      namespace: 'default',
      labels: { app: `web-${i % 500}`, 'pod-template-hash': '5d4f8c7b9', tier: 'front' },
    },
    spec: { containers: [], terminationGracePeriodSeconds: 30 },
    status: { phase: 'Running' },
  }))
}

/** PDBs of one app each; `onRead` is told whenever one is looked at. */
function budgets(count: number, onRead: () => void): readonly PodDisruptionBudget[] {
  return Array.from({ length: count }, (_, i) => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: `web-${i}`, namespace: 'default' },
    get spec() {
      onRead()
      return { selector: { matchLabels: { app: `web-${i}`, tier: 'front' } } }
    },
    status: { disruptionsAllowed: 0, currentHealthy: 3, desiredHealthy: 4 },
  }))
}

function cost(podCount: number, budgetCount: number) {
  let reads = 0
  const all = pods(podCount)
  const known = budgets(budgetCount, () => reads++)
  const startedAt = process.cpuUsage()
  const index = new BudgetIndex(known)
  const facts = {
    node: 'node',
    since: '2026-01-01T00:00:00Z',
    deadlineMs: now + 600_000,
    pendingVolumes: [],
    podsOnNodes: { outlookOf: () => undefined },
    surgeOf: () => undefined,
  }
  // As over 20 nodes.
  const size = podCount / 20
  for (let i = 0; i < 20; i++) {
    const report = drainReport({ ...facts, pods: all.slice(i * size, (i + 1) * size), budgets: index }, now)
    assert.equal(report.pods.length, size)
    drainSummary(report)
  }
  const { user, system } = process.cpuUsage(startedAt)
  return { reads, ms: (user + system) / 1000 }
}

test('looking at 20 nodes of 100 pods does not compare each pod with each of 500 PDBs', (t) => {
  cost(2000, 500)
  const small = cost(2000, 500)
  const large = cost(4000, 500)
  t.diagnostic(`2000 pods: ${small.ms.toFixed(1)} ms, 4000 pods: ${large.ms.toFixed(1)} ms of processor time`)
  assert.ok(small.reads < 500 + 3 * 2000, `${small.reads} PDBs looked at`)
  assert.ok(large.reads - small.reads <= 3 * 2000, `${large.reads - small.reads} more for twice the pods`)
  assert.equal(cost(2000, 1000).reads - small.reads, 500, 'PDBs of other pods are looked at once')
})
