/** Which nodes and pods count for a spread, and what a spread gives way to (scheduling.md 9, 16). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { labels, type Pod, type TopologySpreadConstraint } from '@tenon/api'
import type { PoolInput } from '../../input/input.ts'
import {
  aCluster,
  aFullNode,
  anAppPod,
  aNode,
  anInput,
  anOffering,
  aPool,
  aPoolInput,
  aType,
  boundTo,
  failureTexts,
  placedOn,
  podsPerDomain,
  preferringPods,
  soldAs,
  spreading,
  times,
  typesIn,
} from '../../testing/builders.test-support.ts'
import { nextLoop } from '../../testing/next-loop.test-support.ts'
import { schedule } from '../schedule.ts'

const { zone, hostname } = labels
const rack = 'example.com/rack'
const types = typesIn('zone-1', 'zone-2', 'zone-3')
const pools = [aPoolInput(aPool(), types)]

const is = (key: string, ...values: readonly string[]) => ({ key, operator: 'In' as const, values })

/** A pool whose nodes are in one of these racks, and tainted if `taint` is given. */
function inRacks(name: string, racks: readonly string[], taint?: string): PoolInput {
  const taints =
    taint === undefined ? [] : [{ key: 'example.com/owner', value: taint, effect: 'NoSchedule' as const }]
  return aPoolInput(aPool(name, {}, { requirements: [is(rack, ...racks)], taints }), types)
}

describe('which domains a spread knows', () => {
  test('SCH-105 a tainted domain counts unless the taint policy is Honor', () => {
    const run = (nodeTaintsPolicy: 'Honor' | 'Ignore') =>
      schedule(
        anInput({
          pods: times(2, () => anAppPod('web', spreading(rack, 'web', { nodeTaintsPolicy }))),
          pools: [inRacks('plain', ['foo']), inRacks('tainted', ['bar'], 'ops')],
        }),
      )
    const ignored = run('Ignore')
    assert.deepEqual(podsPerDomain(ignored.claims, rack), { foo: 1 })
    assert.equal(ignored.failures.length, 1)
    const honored = run('Honor')
    assert.deepEqual(podsPerDomain(honored.claims, rack), { foo: 2 })
    assert.deepEqual(honored.failures, [])
  })

  test('SCH-106 nodes that the selector rules out count under affinity policy Ignore alone', () => {
    const team = 'example.com/team'
    const nodes = [
      aNode('n-foo', { labels: { [rack]: 'foo', [team]: 'red' } }),
      aNode('n-bar', { labels: { [rack]: 'bar', [team]: 'red' } }),
    ]
    const pool = aPool('default', {}, { requirements: [is(rack, 'baz'), is(team, 'blue')] })
    const run = (nodeAffinityPolicy: 'Honor' | 'Ignore') =>
      schedule(
        anInput({
          pods: times(3, () =>
            anAppPod('web', {
              ...spreading(rack, 'web', { nodeAffinityPolicy }),
              nodeSelector: { [team]: 'blue' },
            }),
          ),
          pools: [aPoolInput(pool, types)],
          nodes,
          topology: aCluster(nodes),
        }),
      )
    const ignored = run('Ignore')
    assert.deepEqual(podsPerDomain(ignored.claims, rack), { baz: 1 })
    assert.equal(ignored.failures.length, 2)
    assert.deepEqual(podsPerDomain(run('Honor').claims, rack), { baz: 3 })
  })

  test('SCH-108 a label that numbers the shares splits twenty pods over two capacity types', () => {
    const share = 'example.com/share'
    const type = soldAs(aType('any', 16, 64), anOffering('spot', 0.2), anOffering('on-demand', 0.8))
    const pool = (name: string, capacityType: string, ...shares: readonly string[]) =>
      aPoolInput(
        aPool(name, {}, { requirements: [is(labels.capacityType, capacityType), is(share, ...shares)] }),
        [type],
      )
    const { claims, failures } = schedule(
      anInput({
        pods: times(20, () => anAppPod('web', spreading(share, 'web'))),
        pools: [pool('on-demand', 'on-demand', '1'), pool('spot', 'spot', '2', '3', '4', '5')],
      }),
    )
    assert.deepEqual(failures, [])
    assert.deepEqual(podsPerDomain(claims, share), { 1: 4, 2: 4, 3: 4, 4: 4, 5: 4 })
    assert.deepEqual(podsPerDomain(claims, labels.capacityType), { 'on-demand': 4, spot: 16 })
  })

  test('SCH-154 a zone of a pool whose limit is used up still holds the spread back', () => {
    const zonal = (name: string, spec: object, ...zones: readonly string[]) =>
      aPoolInput(aPool(name, spec, { requirements: [is(zone, ...zones)] }), types)
    const { claims, failures } = schedule(
      anInput({
        pods: times(10, () => anAppPod('web', spreading(zone, 'web'))),
        pools: [zonal('a', {}, 'zone-1', 'zone-2'), zonal('b', { limits: { cpu: '0' } }, 'zone-3')],
      }),
    )
    assert.deepEqual(podsPerDomain(claims, zone), { 'zone-1': 1, 'zone-2': 1 })
    assert.equal(failures.length, 8)
  })

  test('SCH-155 under Honor a group counts only nodes whose taints its own pods tolerate', () => {
    const tolerant = (value: string): Pod =>
      anAppPod('web', {
        ...spreading(rack, 'web', { nodeTaintsPolicy: 'Honor' }),
        tolerations: [{ key: 'example.com/owner', operator: 'Equal', value }],
      })
    const { claims, failures } = schedule(
      anInput({
        pods: [...times(2, () => tolerant('red')), ...times(4, () => tolerant('blue'))],
        pools: [inRacks('red', ['foo', 'bar'], 'red'), inRacks('blue', ['foo', 'baz'], 'blue')],
      }),
    )
    assert.deepEqual(failures, [])
    assert.deepEqual(podsPerDomain(claims, rack), { foo: 3, bar: 1, baz: 2 })
    const of = (name: string) => claims.filter((claim) => claim.nodePool === name)
    assert.deepEqual(podsPerDomain(of('red'), rack), { foo: 1, bar: 1 })
    assert.deepEqual(podsPerDomain(of('blue'), rack), { foo: 2, baz: 2 })
  })
})

describe('which pods a spread counts', () => {
  const nodes = [
    aFullNode('n1', 'zone-1'),
    aNode('bare', { available: {}, labels: { [labels.os]: 'linux' } }),
  ]
  const inPool = [aPoolInput(aPool('default', {}, { requirements: [is(zone, 'zone-1', 'zone-2')] }), types)]

  /** Where two pods go beside two running ones. */
  function besides(make: () => Pod): Readonly<Record<string, number>> {
    const { claims, failures } = schedule(
      anInput({
        pods: times(2, () => anAppPod('web', spreading(zone, 'web'))),
        pools: inPool,
        nodes,
        topology: aCluster(nodes, times(2, make)),
      }),
    )
    assert.deepEqual(failures, [])
    return podsPerDomain(claims, zone)
  }

  test('SCH-107 pods that are over, going, unbound, elsewhere or on unlabelled nodes do not count', () => {
    const running = () => boundTo('n1', anAppPod('web'))
    assert.deepEqual(besides(running), { 'zone-2': 2 }, 'two that count')
    const withMeta = (metadata: Partial<Pod['metadata']>) => (): Pod => {
      const pod = running()
      return { ...pod, metadata: { ...pod.metadata, ...metadata } }
    }
    const withPhase = (phase: 'Failed' | 'Succeeded') => (): Pod => ({ ...running(), status: { phase } })
    const uncounted: Readonly<Record<string, () => Pod>> = {
      failed: withPhase('Failed'),
      succeeded: withPhase('Succeeded'),
      terminating: withMeta({ deletionTimestamp: '2026-01-01T00:00:00Z' }),
      unbound: () => anAppPod('web'),
      'other namespace': withMeta({ namespace: 'other' }),
      'node without the label': () => boundTo('bare', anAppPod('web')),
    }
    for (const [kind, make] of Object.entries(uncounted))
      assert.deepEqual(besides(make), { 'zone-1': 1, 'zone-2': 1 }, kind)
  })

  // What the cluster defaults deduce for a ReplicaSet's pods is its selector, revision included.
  test('selectors that differ by revision spread on their own', () => {
    const revision = (hash: string): Pod => {
      const matchLabels = { app: 'web', 'pod-template-hash': hash }
      const pod = anAppPod('web', spreading(zone, 'web', { labelSelector: { matchLabels } }))
      return { ...pod, metadata: { ...pod.metadata, labels: matchLabels } }
    }
    const pods = [...times(3, () => revision('old')), ...times(3, () => revision('new'))]
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.deepEqual(failures, [])
    const placed = claims.flatMap((claim) => {
      const [at] = Object.keys(podsPerDomain([claim], zone))
      return claim.pods.map((pod) => `${at} ${pod.metadata.labels?.['pod-template-hash']}`)
    })
    assert.deepEqual(
      placed.toSorted(),
      ['zone-1', 'zone-2', 'zone-3'].flatMap((at) => [`${at} new`, `${at} old`]),
    )
  })

  test('SCH-156 without a selector a spread counts nobody, its pods share a zone', () => {
    const nobody = { maxSkew: 1, topologyKey: zone, whenUnsatisfiable: 'DoNotSchedule' as const }
    const pods = times(2, () => anAppPod('web', { topologySpreadConstraints: [nobody] }, '10'))
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.deepEqual(failures, [])
    assert.equal(claims.length, 2)
    assert.deepEqual(podsPerDomain(claims, zone), { 'zone-1': 2 })
  })

  test('SCH-157 a key of matchLabelKeys that the pod lacks is ignored', () => {
    const absent = { matchLabelKeys: ['example.com/absent'] }
    const pods = times(2, () => anAppPod('web', spreading(hostname, 'web', absent)))
    const { claims, failures } = schedule(anInput({ pods, pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.pods.length),
      [1, 1],
    )
  })

  test('SCH-158 launched nodes fill up evenly by zone, and not at all by host', () => {
    const first = anInput({ pods: times(4, () => anAppPod('web', spreading(zone, 'web'))), pools })
    const launched = schedule(first)
    assert.deepEqual(
      Object.values(podsPerDomain(launched.claims, zone)).toSorted((a, b) => a - b),
      [1, 1, 2],
    )
    assert.equal(launched.claims.length, 3)
    const then = (key: string) => {
      const arriving = times(5, () => anAppPod('web', spreading(key, 'web')))
      const input = nextLoop(first, launched, arriving)
      return { input, result: schedule(input) }
    }

    const byZone = then(zone)
    assert.deepEqual([byZone.result.claims, byZone.result.failures], [[], []])
    const inZone = (at: string) =>
      byZone.input.nodes
        .filter((node) => node.labels[zone] === at)
        .map(({ name }) => {
          const before = byZone.input.topology.pods.filter((pod) => pod.spec.nodeName === name)
          const added = Object.values(placedOn(byZone.result)).filter((node) => node === name)
          return before.length + added.length
        })
    assert.deepEqual(['zone-1', 'zone-2', 'zone-3'].map(inZone), [[3], [3], [3]])

    const byHost = then(hostname).result
    assert.deepEqual([byHost.placements, byHost.failures], [[], []])
    assert.deepEqual(
      byHost.claims.map((claim) => claim.pods.length),
      [1, 1, 1, 1, 1],
    )
  })
})

describe('what a spread gives way to', () => {
  test('SCH-109 a constraint that cannot be met is given up under ScheduleAnyway alone', () => {
    const run = (whenUnsatisfiable: TopologySpreadConstraint['whenUnsatisfiable']) =>
      schedule(
        anInput({
          pods: times(3, () => anAppPod('web', spreading(rack, 'web', { whenUnsatisfiable }))),
          pools,
        }),
      )
    assert.deepEqual(failureTexts(run('ScheduleAnyway')), {})
    assert.equal(run('ScheduleAnyway').claims.flatMap((claim) => claim.pods).length, 3)
    assert.equal(run('DoNotSchedule').failures.length, 3)
  })

  test('SCH-162 a preference to share a host gives way to a required spread over hosts', () => {
    const spec = { ...spreading(hostname, 'web'), ...preferringPods('podAffinity', hostname, 'web') }
    const { claims, failures } = schedule(anInput({ pods: times(3, () => anAppPod('web', spec)), pools }))
    assert.deepEqual(failures, [])
    assert.deepEqual(
      claims.map((claim) => claim.pods.length),
      [1, 1, 1],
    )
  })
})
