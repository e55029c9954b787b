import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type Pod } from '@tenon/api'
import { anInput, aPoolInput, aPool, aType, strictPolicy } from '../../testing/builders.test-support.ts'
import { finished } from '../../steps.ts'
import { schedule } from '../schedule.ts'
import { inSchedulerOrder } from './launchable-claims.ts'

/** @param refused the resource version that the scheduler's last refusal left. */
function replica(name: string, refused: number, topologyKey: string, owner = 'one'): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      uid: name,
      resourceVersion: String(refused),
      labels: { app: owner },
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: owner, uid: owner, controller: true },
      ],
    },
    spec: {
      containers: [{ name: 'c' }],
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey, whenUnsatisfiable: 'DoNotSchedule' }],
    },
  }
}

/** Names of the pods of each claim once twins have traded places. */
function traded(plan: readonly (readonly [zone: string, ...pods: readonly Pod[]])[]): readonly string[][] {
  const claims = plan.map(([zone, ...pods]) => {
    const requirements = [{ key: labels.zone, operator: 'In' as const, values: [zone] }]
    return { requirements, pods }
  })
  return finished(inSchedulerOrder(claims)).map(({ pods }) => pods.map(({ metadata }) => metadata.name))
}

test('the pods that are tried first go to a zone each, before any zone gets its second one', () => {
  const [a, b, c, d] = [9, 10, 11, 12].map((version, at) => replica('abcd'[at] ?? '', version, labels.zone))
  assert.ok(a && b && c && d)
  assert.deepEqual(
    traded([
      ['zone-1', a, b],
      ['zone-2', d, c],
    ]),
    [
      ['a', 'c'],
      ['b', 'd'],
    ],
  )
})

test('two nodes in one zone count together, and every node is a domain where pods spread over nodes', () => {
  const zonal = [1, 2, 3].map((version) => replica(`pod-${version}`, version, labels.zone))
  const [first, second, third] = zonal
  assert.ok(first && second && third)
  assert.deepEqual(
    traded([
      ['zone-1', first],
      ['zone-1', second],
      ['zone-2', third],
    ]),
    [['pod-1'], ['pod-3'], ['pod-2']],
  )
  const [one, two, three] = [1, 2, 3].map((version) => replica(`pod-${version}`, version, labels.hostname))
  assert.ok(one && two && three)
  assert.deepEqual(
    traded([
      ['zone-1', one, two],
      ['zone-1', three],
    ]),
    [['pod-1', 'pod-3'], ['pod-2']],
  )
})

test('only pods of one owner that ask for the same trade places', () => {
  const mine = replica('mine', 2, labels.zone)
  const other = replica('other', 1, labels.zone, 'two')
  const larger = replica('larger', 1, labels.zone)
  const spec = { ...larger.spec, containers: [{ name: 'c', resources: { requests: { cpu: '2' } } }] }
  const plain = { ...replica('plain', 1, labels.zone), spec: { containers: [{ name: 'c' }] } }
  assert.deepEqual(
    traded([
      ['zone-1', mine, plain],
      ['zone-2', other],
      ['zone-3', { ...larger, spec }],
    ]),
    [['mine', 'plain'], ['other'], ['larger']],
  )
})

test('a decision that pods will be steered by has them in turn already; any other has them as they come', () => {
  // Refused in the opposite order of their names.
  const names = ['a', 'b', 'c', 'd']
  const pods = names.map((name, at) => {
    const pod = replica(name, 9 - at, labels.zone)
    const constraints = (pod.spec.topologySpreadConstraints ?? []).map((each) => ({
      ...each,
      labelSelector: { matchLabels: { app: 'one' } },
    }))
    const containers = [{ name: 'c', resources: { requests: { cpu: '900m' } } }]
    return { ...pod, spec: { containers, topologySpreadConstraints: constraints } }
  })
  const pools = [aPoolInput(aPool(), [aType('two', 2, 8, ['zone-1', 'zone-2'])])]
  const planned = (improvement: 'planned' | 'free') => {
    const { claims } = schedule(anInput({ pods, pools, policy: { ...strictPolicy, improvement } }))
    return claims.map((claim) => claim.pods.map(({ metadata }) => metadata.name))
  }
  const firstOf = (claims: readonly (readonly string[])[]) => claims.map(([first = '']) => first).toSorted()
  assert.deepEqual(firstOf(planned('planned')), ['c', 'd'])
  assert.deepEqual(firstOf(planned('free')), ['a', 'b'])
})
