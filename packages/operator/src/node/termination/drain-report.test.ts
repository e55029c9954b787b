import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod, PodDisruptionBudget } from '@tenon/api'
import { BudgetIndex, drainReport, drainSummary } from './drain-report.ts'

const now = Date.parse('2026-01-01T00:10:00Z')
const podsOnNodes = { outlookOf: () => undefined }
const never = Number.POSITIVE_INFINITY
const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } as const
const unready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'False' }] } as const

function aPod(name: string, metadata: Partial<Pod['metadata']> = {}, spec: Partial<Pod['spec']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: 'web' }, ...metadata },
    spec: { containers: [], terminationGracePeriodSeconds: 30, ...spec },
    status: ready,
  }
}

function aBudget(
  name: string,
  status: NonNullable<PodDisruptionBudget['status']>,
  spec: Partial<PodDisruptionBudget['spec']> = {},
): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
    status,
  }
}

function report(pods: readonly Pod[], budgets: readonly PodDisruptionBudget[] = [], deadlineMs = never) {
  const facts = {
    node: 'n',
    since: '2026-01-01T00:00:00Z',
    deadlineMs,
    pods,
    pendingVolumes: ['pv-1'],
    surgeOf: () => undefined,
    podsOnNodes,
  }
  return drainReport({ ...facts, budgets: new BudgetIndex(budgets) }, now)
}

const rules = (...args: Parameters<typeof report>) => report(...args).pods.map(({ rule }) => rule)
const closed = { disruptionsAllowed: 0, currentHealthy: 3, desiredHealthy: 3 }

test('the rule that holds a pod is named', () => {
  const protectedBy = (value: string) => ({ annotations: { 'karpenter.sh/do-not-disrupt': value } })
  const timed: Pod = { ...aPod('b', protectedBy('1h')), status: { startTime: '2026-01-01T00:00:00Z' } }
  assert.deepEqual(rules([aPod('a', protectedBy('true')), timed]), [
    { kind: 'doNotDisrupt', by: 'karpenter.sh/do-not-disrupt' },
    { kind: 'doNotDisrupt', by: 'karpenter.sh/do-not-disrupt', until: '2026-01-01T01:00:00Z' },
  ])
  const held = { kind: 'podDisruptionBudget', budget: 'default/one', currentHealthy: 3, desiredHealthy: 3 }
  assert.deepEqual(rules([aPod('a')], [aBudget('one', closed)]), [held])
  assert.deepEqual(rules([aPod('a')], [aBudget('two', closed), aBudget('one', closed)]), [
    { kind: 'severalPodDisruptionBudgets', budgets: ['default/one', 'default/two'] },
  ])
  assert.deepEqual(rules([aPod('a')], [aBudget('one', { ...closed, disruptionsAllowed: 1 })]), [
    { kind: 'evicting' },
  ])
  assert.deepEqual(rules([aPod('a', { namespace: 'other' })], [aBudget('one', closed)]), [
    { kind: 'evicting' },
  ])
})

test('a PDB holds no pod that its policy for unready ones, or its phase, lets go', () => {
  const kindOf = (pod: Pod, budget: PodDisruptionBudget) => rules([pod], [budget])[0]?.kind
  const sick: Pod = { ...aPod('a'), status: unready }
  const short = { disruptionsAllowed: 0, currentHealthy: 2, desiredHealthy: 3 }
  assert.equal(kindOf(sick, aBudget('one', short)), 'podDisruptionBudget')
  assert.equal(kindOf(sick, aBudget('one', closed)), 'evicting')
  assert.equal(kindOf(sick, aBudget('one', short, { unhealthyPodEvictionPolicy: 'AlwaysAllow' })), 'evicting')
  assert.equal(kindOf({ ...aPod('a'), status: { phase: 'Pending' } }, aBudget('one', closed)), 'evicting')
})

test('PDBs are found by labels, by expressions, and without either', () => {
  const named = (selector: PodDisruptionBudget['spec']['selector']) =>
    new BudgetIndex([aBudget('one', closed, { selector: selector ?? {} })]).covering(aPod('a')).length
  assert.equal(named({ matchLabels: { app: 'web' } }), 1)
  assert.equal(named({ matchLabels: { app: 'web', tier: 'front' } }), 0)
  assert.equal(named({ matchExpressions: [{ key: 'app', operator: 'Exists' }] }), 1)
  assert.equal(named({}), 1)
})

test('pods that leave, and pods of a later tier, are told apart; the deadline is named for each', () => {
  const pods = [
    aPod('critical', {}, { priorityClassName: 'system-node-critical' }),
    aPod('going', { deletionTimestamp: '2026-01-01T00:10:20Z' }),
    aPod('plain'),
    aPod('long', {}, { terminationGracePeriodSeconds: 900 }),
  ]
  const { pods: waiting, deadline, volumes } = report(pods, [], now + 600_000)
  assert.equal(deadline, '2026-01-01T00:20:00Z')
  assert.deepEqual(volumes, [], 'volumes are looked at later')
  assert.deepEqual(
    waiting.map(({ name, rule, forcedAt }) => [name, rule, forcedAt]),
    [
      ['critical', { kind: 'laterTier', after: 'pods' }, '2026-01-01T00:19:30Z'],
      ['going', { kind: 'leaving', until: '2026-01-01T00:10:20Z' }, undefined],
      ['long', { kind: 'evicting' }, '2026-01-01T00:05:00Z'],
      ['plain', { kind: 'evicting' }, '2026-01-01T00:19:30Z'],
    ],
  )
  assert.deepEqual(report([]).volumes, ['pv-1'])
})

test('the summary of the longest drain fits into an event, with the deadline and each rule', () => {
  const pods = Array.from({ length: 2000 }, (_, i) =>
    aPod(`web-${'x'.repeat(40)}-${i}`, {
      labels: { app: `app-${i % 40}` },
      ...(i % 4 === 0 && { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } }),
    }),
  )
  const budgets = Array.from({ length: 40 }, (_, i) =>
    aBudget(`budget-${i}`, closed, { selector: { matchLabels: { app: `app-${i}` } } }),
  )
  const summary = drainSummary(report(pods, budgets, now + 600_000))
  assert.ok(summary.length < 1024, `${summary.length} characters`)
  const start = 'Waiting for 2000 pods to leave the node; the rest is deleted by 2026-01-01T00:20:00Z: '
  assert.ok(summary.startsWith(start), summary)
  assert.match(
    summary,
    /50 held by PodDisruptionBudget default\/budget-1, which needs 3 healthy pods and has 3/,
  )
  assert.match(summary, /1350 held by 27 other PodDisruptionBudgets/)
  assert.match(summary, /500 protected by karpenter.sh\/do-not-disrupt until it is removed/)
})
