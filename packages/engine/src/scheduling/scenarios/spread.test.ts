/** Spreading pods over the domains of a label (scheduling.md 9.5, 16). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type Pod } from '@tenon/api'
import {
  aCluster,
  aFullNode,
  anAppPod,
  anExpression,
  anInput,
  aPool,
  aPoolInput,
  boundTo,
  failureTexts,
  podNames,
  podsPerDomain,
  preferring,
  requiring,
  spreading,
  times,
  typesIn,
} from '../../testing/builders.test-support.ts'
import { schedule } from '../schedule.ts'

const { zone, hostname } = labels
const types = typesIn('zone-1', 'zone-2', 'zone-3')
const pools = [aPoolInput(aPool(), types)]

/** A pool whose nodes may only be in these zones. */
function poolIn(...zones: readonly string[]) {
  const requirements = [{ key: zone, operator: 'In' as const, values: zones }]
  return [aPoolInput(aPool('default', {}, { requirements }), types)]
}

const overZones = (rest = {}): Pod => anAppPod('web', spreading(zone, 'web', rest))
const overHosts = (app: string, rest = {}): Pod => anAppPod(app, spreading(hostname, app, rest))
const ascending = (counts: readonly number[]) => counts.toSorted((a, b) => a - b)
const sizes = (claims: readonly { readonly pods: readonly Pod[] }[]) => claims.map(({ pods }) => pods.length)

describe('spreading over zones', () => {
  test('SCH-92 four pods over three zones go one, one and two', () => {
    const { claims, failures } = schedule(anInput({ pods: times(4, () => overZones()), pools }))
    assert.deepEqual(failures, [])
    const counts = podsPerDomain(claims, zone)
    assert.deepEqual(Object.keys(counts).toSorted(), ['zone-1', 'zone-2', 'zone-3'])
    assert.deepEqual(ascending(Object.values(counts)), [1, 1, 2])
  })

  test('SCH-93 a topology key that nothing carries holds its pod back, the others proceed', () => {
    const lost = anAppPod('web', spreading('example.com/rack', 'web'))
    const others = [anAppPod('web'), overZones()]
    const result = schedule(anInput({ pods: [lost, ...others], pools }))
    assert.deepEqual(podNames(result.claims.flatMap((claim) => claim.pods)), podNames(others))
    const texts = failureTexts(result)
    assert.deepEqual(Object.keys(texts), [lost.metadata.name])
    assert.match(texts[lost.metadata.name] ?? '', /topology spread constraint over example\.com\/rack/)
  })

  test('SCH-94 a pod in a zone the pool cannot reach lets the other zones have two each at most', () => {
    const nodes = [aFullNode('n3', 'zone-3')]
    const { claims, failures } = schedule(
      anInput({
        pods: times(6, () => overZones()),
        pools: poolIn('zone-1', 'zone-2'),
        nodes,
        topology: aCluster(nodes, [boundTo('n3', anAppPod('web'))]),
      }),
    )
    assert.deepEqual(podsPerDomain(claims, zone), { 'zone-1': 2, 'zone-2': 2 })
    assert.equal(failures.length, 2)
  })

  test('SCH-95 a skew of five lets the only zone left have six where the others hold one', () => {
    const nodes = [aFullNode('n1', 'zone-1'), aFullNode('n2', 'zone-2')]
    const { claims, failures } = schedule(
      anInput({
        pods: times(10, () => overZones({ maxSkew: 5 })),
        pools: poolIn('zone-3'),
        nodes,
        topology: aCluster(nodes, [boundTo('n1', anAppPod('web')), boundTo('n2', anAppPod('web'))]),
      }),
    )
    assert.deepEqual(podsPerDomain(claims, zone), { 'zone-3': 6 })
    assert.equal(failures.length, 4)
  })

  test('SCH-96 where the skew is three, new pods go only to the emptiest zones', () => {
    const nodes = [aFullNode('n1', 'zone-1')]
    const { claims, failures } = schedule(
      anInput({
        pods: times(5, () => overZones()),
        pools,
        nodes,
        topology: aCluster(
          nodes,
          times(3, () => boundTo('n1', anAppPod('web'))),
        ),
      }),
    )
    assert.deepEqual(failures, [])
    const counts = podsPerDomain(claims, zone)
    assert.deepEqual(Object.keys(counts).toSorted(), ['zone-2', 'zone-3'])
    assert.deepEqual(ascending(Object.values(counts)), [2, 3])
  })

  test('SCH-97 pods bound to a zone by their selector are spread within that zone alone', () => {
    const pinned = (to: string): Pod =>
      anAppPod('web', { ...spreading(zone, 'web'), nodeSelector: { [zone]: to } })
    const pods = [...times(5, () => pinned('zone-1')), ...times(10, () => pinned('zone-2'))]
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(podsPerDomain(claims, zone), { 'zone-1': 5, 'zone-2': 10 })
  })

  test('SCH-98 pods that require two of the zones are spread over these two', () => {
    const spec = {
      ...spreading(zone, 'web'),
      ...requiring([anExpression(zone, 'In', 'zone-1', 'zone-2')]),
    }
    const { claims, failures } = schedule(anInput({ pods: times(10, () => anAppPod('web', spec)), pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(podsPerDomain(claims, zone), { 'zone-1': 5, 'zone-2': 5 })
  })

  test('SCH-99 a preference for two of the zones gives way to the spread over all', () => {
    const spec = {
      ...spreading(zone, 'web'),
      ...preferring([1, anExpression(zone, 'In', 'zone-1', 'zone-2')]),
    }
    const { claims, failures } = schedule(anInput({ pods: times(6, () => anAppPod('web', spec)), pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(podsPerDomain(claims, zone), { 'zone-1': 2, 'zone-2': 2, 'zone-3': 2 })
  })

  test('SCH-100 with fewer zones than minDomains each takes one pod, the third waits', () => {
    const { claims, failures } = schedule(
      anInput({ pods: times(3, () => overZones({ minDomains: 3 })), pools: poolIn('zone-1', 'zone-2') }),
    )
    assert.deepEqual(podsPerDomain(claims, zone), { 'zone-1': 1, 'zone-2': 1 })
    assert.equal(failures.length, 1)
  })
})

describe('spreading over hosts', () => {
  test('SCH-101 pods that do not match their own selector share one node', () => {
    const pods = times(3, () => anAppPod('web', spreading(hostname, 'other')))
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(sizes(claims), [3])
  })

  test('SCH-102 a skew of four holds four pods on one node', () => {
    const pods = times(4, () => overHosts('web', { maxSkew: 4 }))
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(sizes(claims), [4])
    const five = schedule(anInput({ pods: [...pods, overHosts('web', { maxSkew: 4 })], pools }))
    assert.deepEqual(ascending(sizes(five.claims)), [1, 4])
  })

  test('SCH-103 matchLabelKeys spread the pods of each value on their own', () => {
    const revision = (value: string): Pod => {
      const pod = anAppPod('web', spreading(hostname, 'web', { matchLabelKeys: ['revision'] }))
      return { ...pod, metadata: { ...pod.metadata, labels: { app: 'web', revision: value } } }
    }
    const pods = [...times(2, () => revision('a')), ...times(2, () => revision('b'))]
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.pods.map((pod) => pod.metadata.labels?.['revision'] ?? '').toSorted()),
      [
        ['a', 'b'],
        ['a', 'b'],
      ],
    )
  })

  test('SCH-104 two apps of two pods each need two nodes between them', () => {
    const pods = [...times(2, () => overHosts('web')), ...times(2, () => overHosts('api'))]
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.pods.map((pod) => pod.metadata.labels?.['app'] ?? '').toSorted()),
      [
        ['api', 'web'],
        ['api', 'web'],
      ],
    )
  })
})
