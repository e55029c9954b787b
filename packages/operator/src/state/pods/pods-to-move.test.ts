import assert from 'node:assert/strict'
import { test } from 'node:test'
import { annotations, type Pod, type PodDisruptionBudget } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import * as fc from 'fast-check'
import { ObservedCluster } from '../observed-cluster.test-support.ts'

function aPod(name: string, more: { readonly metadata?: object; readonly nodeName?: string } = {}): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'n', uid: name, labels: { app: 'a' }, ...more.metadata },
    spec: { nodeName: more.nodeName ?? 'node', containers: [] },
    status: { phase: 'Running', startTime: rfc3339(0) },
  }
}

const aBudget = (disruptionsAllowed: number, more: object = {}): PodDisruptionBudget => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'a', namespace: 'n', uid: 'a' },
  spec: {
    selector: { matchLabels: { app: 'a' } },
    ...(disruptionsAllowed === 0 && { maxUnavailable: 0 }),
    ...more,
  },
  status: { disruptionsAllowed },
})

const names = (pods: readonly Pod[]) => pods.map(({ metadata }) => metadata.name)

test('what the pods of a node ask is worked out once, until one of them changes', () => {
  const cluster = new ObservedCluster()
  const { podsOnNodes } = cluster.state
  cluster.see(aPod('p'), aPod('q', { nodeName: 'other' }))
  const first = podsOnNodes.of('node')
  assert.deepEqual([names(first.pods), first.disruptionCost], [['p'], 2])
  const other = podsOnNodes.of('other')
  cluster.see(aPod('r'))
  assert.deepEqual(
    [names(podsOnNodes.of('node').pods), podsOnNodes.of('node').disruptionCost],
    [['p', 'r'], 3],
  )
  cluster.see(
    aPod('p', { metadata: { annotations: { 'controller.kubernetes.io/pod-deletion-cost': '134217728' } } }),
  )
  assert.equal(podsOnNodes.of('node').disruptionCost, 4)
  cluster.see(aPod('r', { nodeName: 'elsewhere' }))
  assert.deepEqual(
    [names(podsOnNodes.of('node').pods), names(podsOnNodes.of('elsewhere').pods)],
    [['p'], ['r']],
  )
  cluster.miss(aPod('p'))
  assert.deepEqual(names(podsOnNodes.of('node').pods), [])
  assert.equal(podsOnNodes.of('other'), other)
})

test('how a pod fares changes nothing for who would move it, who is told of it as it is now', () => {
  const cluster = new ObservedCluster()
  const { podsOnNodes } = cluster.state
  const pod = aPod('p')
  const isReady = (status: 'True' | 'False', at: string) => [
    { type: 'Ready', status, lastTransitionTime: at },
  ]
  const seen = (conditions: object[]): Pod => {
    const now = { ...pod, status: { phase: 'Running', startTime: rfc3339(0), conditions } } as Pod
    cluster.see(now)
    return now
  }
  cluster.see(aBudget(0, { unhealthyPodEvictionPolicy: 'AlwaysAllow' }), aPod('q'))
  seen(isReady('True', 'a'))
  const before = podsOnNodes.of('node')
  const later = seen(isReady('True', 'b'))
  const after = podsOnNodes.of('node')
  assert.deepEqual([names(after.pods), after.blocking], [names(before.pods), before.blocking])
  assert.equal(after.annotated, before.annotated, 'nothing was worked out again')
  assert.ok(after.pods.includes(later))
  seen(isReady('False', 'c'))
  assert.equal(podsOnNodes.of('node').blocking?.pod, 'n/q', 'an unhealthy pod may go')
})

test('a PDB that changes counts at once', () => {
  const cluster = new ObservedCluster()
  const { podsOnNodes } = cluster.state
  cluster.see(aPod('p'))
  assert.deepEqual([podsOnNodes.of('node').blocking, podsOnNodes.budgets()], [undefined, []])
  cluster.see(aBudget(0))
  const held = podsOnNodes.of('node')
  assert.deepEqual([held.blocking?.pod, held.movable, names(held.pods)], ['n/p', [], ['p']])
  cluster.see(aBudget(1))
  assert.deepEqual(
    [podsOnNodes.of('node').blocking, names(podsOnNodes.of('node').movable)],
    [undefined, ['p']],
  )
  assert.equal(podsOnNodes.budgets(), podsOnNodes.budgets())
})

test('a pod that is protected for a time may be moved once that is over, without any change', async () => {
  const cluster = new ObservedCluster()
  const { state, clock } = cluster
  const protectedPod = aPod('p', { metadata: { annotations: { [annotations.doNotDisrupt]: '10m' } } })
  cluster.see({ ...protectedPod, status: { phase: 'Running', startTime: rfc3339(clock.now()) } } as Pod)
  const before = state.podsOnNodes.of('node')
  assert.deepEqual([names(before.annotated), before.movable], [['p'], []])
  await clock.advance(11 * 60_000)
  assert.deepEqual(names(state.podsOnNodes.of('node').movable), ['p'])
})

test('no node has become empty, or is empty no more, as long as the version is the same', () => {
  const pod = fc.record({
    name: fc.constantFrom('p', 'q', 'r'),
    nodeName: fc.constantFrom('node', 'other', ''),
    phase: fc.constantFrom('Pending', 'Running', 'Succeeded'),
    isGone: fc.boolean(),
    conditions: fc.constantFrom([], [{ type: 'Ready', status: 'True' }]),
  })
  fc.assert(
    fc.property(fc.array(pod, { maxLength: 20 }), (changes) => {
      const cluster = new ObservedCluster()
      const { podsOnNodes } = cluster.state
      const seen = new Set<string>()
      const empty = () => ['node', 'other'].filter((name) => podsOnNodes.of(name).isEmpty)
      let before = { version: podsOnNodes.version, empty: empty() }
      for (const { name, nodeName, phase, isGone, conditions } of changes) {
        const now = { ...aPod(name, { nodeName }), status: { phase, conditions } } as Pod
        const isKnown = seen.has(name)
        if (isGone && isKnown) cluster.miss(now)
        if (!isGone) cluster.see(now)
        if (isGone) seen.delete(name)
        else seen.add(name)
        const after = { version: podsOnNodes.version, empty: empty() }
        if (after.version === before.version) assert.deepEqual(after.empty, before.empty)
        before = after
      }
    }),
  )
})
