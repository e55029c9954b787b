import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import {
  evictionCost,
  isCurrentlyReschedulable,
  isEvictable,
  isPausedByBudget,
} from '../../state/pods/pods.ts'
import { isForceEligible, planDrain } from './drain.ts'

const now = Date.parse('2026-01-01T00:10:00Z')
const at = (seconds: number) => new Date(now + seconds * 1000).toISOString().replace('.000', '')
const never = Number.POSITIVE_INFINITY

function aPod(name: string, spec: Partial<Pod['spec']> = {}, metadata: Partial<Pod['metadata']> = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default', labels: { app: 'web' }, ...metadata },
    spec: { containers: [], terminationGracePeriodSeconds: 30, ...spec },
  }
}
const names = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata.name)

test('LIF-71 LIF-92 only the first tier goes, and what is past its deadline', () => {
  const critical = { priorityClassName: 'system-node-critical' }
  const pods = [
    aPod('plain'),
    aPod('critical', critical),
    aPod('long', { ...critical, terminationGracePeriodSeconds: 600 }),
  ]
  const plan = planDrain(pods, now + 300_000, now)
  assert.deepEqual(names(plan.waiting), ['plain', 'critical', 'long'])
  assert.deepEqual(names(plan.force), ['long'])
  assert.deepEqual(names(plan.evict), ['plain'])
})

test('LIF-76 a pod is stuck strictly more than 60 s after its deletion time', () => {
  const deleted = (seconds: number) => aPod('p', {}, { deletionTimestamp: at(seconds) })
  assert.equal(planDrain([deleted(-60)], never, now).waiting.length, 1)
  assert.equal(planDrain([deleted(-61)], never, now).waiting.length, 0)
})

test('LIF-91 LIF-98 a pod is forced strictly after deadline less grace period, one without a grace period never', () => {
  assert.ok(!isForceEligible(aPod('p'), now + 30_000, now))
  assert.ok(isForceEligible(aPod('p'), now + 29_000, now))
  const { terminationGracePeriodSeconds: _, ...spec } = aPod('p').spec
  assert.ok(!isForceEligible({ ...aPod('p'), spec }, now - 3_600_000, now))
  assert.ok(!isForceEligible(aPod('p'), never, now))
})

test('LIF-93 a pod being deleted is forced when it would end after the deadline', () => {
  const deleted = aPod('p', {}, { deletionTimestamp: at(100) })
  assert.ok(isForceEligible(deleted, now + 99_000, now))
  assert.ok(!isForceEligible(deleted, now + 100_000, now))
})

test('a pod that was deleted for a deadline that is over is not deleted again', () => {
  const deleted = aPod('p', {}, { deletionTimestamp: at(1) })
  assert.ok(!isForceEligible(deleted, now - 3_600_000, now))
  assert.ok(!isForceEligible(deleted, now - 3_600_000, now + 30_000))
  assert.ok(isForceEligible(aPod('p', {}, { deletionTimestamp: at(3) }), now - 3_600_000, now))
})

test('LIF-87 DIS-19 DIS-20 DIS-21 do-not-disrupt counts from the start of the pod', () => {
  const annotated = (value: string, startTime?: string): Pod => ({
    ...aPod('p', {}, { annotations: { 'karpenter.sh/do-not-disrupt': value } }),
    status: startTime === undefined ? {} : { startTime },
  })
  assert.ok(!isEvictable(annotated('true'), now))
  assert.ok(!isEvictable(annotated('2m'), now))
  assert.ok(!isEvictable(annotated('2m', at(-60)), now))
  assert.ok(isEvictable(annotated('2m', at(-120)), now))
  for (const value of ['garbage', '0s', '-5m', 'false']) assert.ok(isEvictable(annotated(value), now), value)
})

test('DIS-23 DIS-24 DIS-25 DIS-26 DIS-27 DIS-158 SCH-79 what PDBs hold', () => {
  const pdb = (spec: object, status = { disruptionsAllowed: 0 }, namespace = 'default') => ({
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'pdb', namespace },
    spec: { selector: {}, ...spec },
    status,
  })
  const held = (pod: Pod, ...budgets: ReturnType<typeof pdb>[]) =>
    `${!isCurrentlyReschedulable(pod, budgets, now)}/${isPausedByBudget(pod, budgets, now)}`
  assert.equal(held(aPod('p')), 'false/false')
  assert.equal(held(aPod('p'), pdb({ maxUnavailable: 0 })), 'true/true')
  assert.equal(held(aPod('p'), pdb({ maxUnavailable: '0%' })), 'true/true')
  assert.equal(held(aPod('p'), pdb({ minAvailable: '100%' })), 'true/true')
  assert.equal(held(aPod('p'), pdb({ minAvailable: 1 })), 'false/true')
  assert.equal(held(aPod('p'), pdb({ minAvailable: 1 }, { disruptionsAllowed: 1 })), 'false/false')
  assert.equal(held(aPod('p'), pdb({ maxUnavailable: 0 }, undefined, 'other')), 'false/false')
  assert.equal(
    held(aPod('p', { tolerations: [{ operator: 'Exists' }] }), pdb({ maxUnavailable: 0 })),
    'false/false',
  )
  const unready = { ...aPod('p'), status: { conditions: [{ type: 'Ready', status: 'False' }] } } as Pod
  const lenient = pdb({ maxUnavailable: 0, unhealthyPodEvictionPolicy: 'AlwaysAllow' })
  assert.equal(held(unready, lenient), 'false/false')
  assert.equal(held(aPod('p'), lenient), 'true/true')
  assert.equal(held(unready, lenient, pdb({})), 'true/true')
})

test('DIS-30 DIS-31 DIS-32 what a pod costs', () => {
  const cost = (deletion: string, priority?: number) =>
    evictionCost(
      aPod('p', priority === undefined ? {} : { priority }, {
        annotations: { 'controller.kubernetes.io/pod-deletion-cost': deletion },
      }),
    )
  assert.equal(evictionCost(aPod('p')), 1)
  assert.ok(cost('101') > cost('100') && cost('100') > 1 && cost('-100') < 1)
  assert.ok(cost('0', 1) > 1 && cost('0', -1) < 1)
  assert.equal(cost('garbage'), 1)
  assert.deepEqual([cost('2147483647', 2_000_000_000), cost('-2147483647', -2_000_000_000)], [10, -10])
})
