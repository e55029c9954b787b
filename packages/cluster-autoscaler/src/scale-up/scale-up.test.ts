import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pod, PodSpec } from '@tenon/api'
import { aGroup } from '../testing/fake-groups.test-support.ts'
import { aNode, aPod, pods } from '../testing/objects.test-support.ts'
import { scaleUp } from './scale-up.test-support.ts'

const hostname = 'kubernetes.io/hostname'
const zone = 'topology.kubernetes.io/zone'

function spread(owner: string, topologyKey: string, maxSkew: number, minDomains?: number): Partial<PodSpec> {
  return {
    topologySpreadConstraints: [
      {
        topologyKey,
        maxSkew,
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: { app: owner } },
        ...(minDomains !== undefined && { minDomains }),
      },
    ],
  }
}

function refusalOf(refusals: ReadonlyMap<Pod, string>, pod: Pod | undefined): string | undefined {
  return pod === undefined ? undefined : refusals.get(pod)
}

describe('growing a group', () => {
  test('CAS-49 kinds of pods are counted for each estimate, and the time to find them is measured', async () => {
    const instanceType = { 'node.kubernetes.io/instance-type': 'standard.large' }
    const { metrics } = await scaleUp({
      groups: [
        { group: aGroup('g'), node: aNode('t', { labels: instanceType }) },
        { group: aGroup('tainted'), node: aNode('u', { taints: [{ key: 'k', effect: 'NoSchedule' }] }) },
      ],
      pods: [...pods('a', 3, { cpu: '1' }), ...pods('b', 2, { cpu: '2' })],
    })
    const labels = { instance_type: 'standard.large', cpu_count: '4', namespace_count: '1' }
    assert.equal(metrics.of('binpacking_heterogeneity', labels), 1)
    assert.equal(metrics.of('binpacking_heterogeneity', { instance_type: '' }), undefined)
    for (const name of ['scaleUp:buildPodEquivalenceGroups', 'scaleUp:estimate'])
      assert.equal(metrics.of('function_duration_seconds', { function: name }), 1, name)
  })

  test('CAS-40 CAS-14 a pod without room makes its group grow, and events tell it', async () => {
    const pod = aPod('p', { cpu: '3' })
    const { result, sizes, events, registry, metrics } = await scaleUp({
      groups: [{ group: aGroup('g', { targetSize: 3 }), node: aNode('t') }],
      pods: [pod],
    })
    assert.equal(result.kind, 'successful')
    assert.deepEqual(sizes, { g: 4 })
    assert.deepEqual(registry, ['scale-up g 1'])
    assert.deepEqual(events.told, [
      'ScaledUpGroup status: Scale-up: setting group g size to 4 instead of 3 (max: 10)',
      'ScaledUpGroup status: Scale-up: group g size set to 4 instead of 3 (max: 10)',
      'TriggeredScaleUp Pod/p: pod triggered scale-up: [{g 3->4 (max: 10)}]',
    ])
    assert.equal(metrics.of('scaled_up_nodes_total'), 1)
  })

  test('nodes with a GPU are counted as such, whether they come or not', async () => {
    const node = aNode('t', { allocatable: { 'nvidia.com/gpu': '1' } })
    const scene = { groups: [{ group: aGroup('g'), node }], pods: [aPod('p', { cpu: '3' })] }
    const gpu = { gpu_resource_name: 'nvidia.com/gpu', gpu_name: 'generic' }
    const { metrics } = await scaleUp(scene)
    assert.equal(metrics.of('scaled_up_nodes_total', gpu), 1)
    assert.equal(metrics.of('scaled_up_gpu_nodes_total', gpu), 1)
    const failed = await scaleUp({ ...scene, failing: { g: 'at once' } })
    assert.equal(failed.metrics.of('failed_gpu_scale_ups_total', gpu), 1)
  })

  test('CAS-56 CAS-13 a refusal is told, backs the group off and does not throw', async () => {
    const { result, events, registry, metrics, sizes } = await scaleUp({
      groups: [{ group: aGroup('g'), node: aNode('t') }],
      pods: pods('a', 2, { cpu: '3' }),
      failing: { g: 'at once' },
    })
    assert.deepEqual(result, { kind: 'failed', message: 'the cloud says no', isTransient: false })
    assert.deepEqual(sizes, { g: 1 })
    assert.deepEqual(registry, ['failed g cloudProviderError'])
    assert.deepEqual(events.of('FailedToScaleUpGroup'), [
      'FailedToScaleUpGroup status: Scale-up failed for group g: the cloud says no',
    ])
    assert.equal(metrics.of('failed_scale_ups_total', { reason: 'cloudProviderError' }), 1)
    assert.equal(metrics.of('failed_node_creations_total', { reason: 'cloudProviderError' }), 2)
  })

  test('CAS-15 CAS-16 an increase that fails later backs the group off then', async () => {
    const { result, events, registry } = await scaleUp({
      groups: [{ group: aGroup('g'), node: aNode('t') }],
      pods: pods('a', 1, { cpu: '3' }),
      failing: { g: 'later' },
    })
    assert.equal(result.kind, 'successful')
    assert.deepEqual(registry, ['scale-up g 1', 'failed g cloudProviderError'])
    assert.equal(events.of('FailedToScaleUpGroup').length, 1)
  })

  test('CAS-114 of two balanced groups the second is not scaled after the first failed, unless in parallel', async () => {
    const scene = {
      groups: [
        { group: aGroup('a'), node: aNode('ta') },
        { group: aGroup('b'), node: aNode('tb') },
      ],
      pods: pods('x', 2, { cpu: '3' }),
      failing: { a: 'at once' as const, b: 'at once' as const },
    }
    const options = { balanceSimilarNodeGroups: true }
    const sequential = await scaleUp({ ...scene, options })
    assert.equal(sequential.cloud.calls.length, 1)
    const parallel = await scaleUp({ ...scene, options: { ...options, parallelScaleUp: true } })
    assert.deepEqual(parallel.cloud.calls.toSorted(), ['increase a 1', 'increase b 1'])
  })
})

describe('groups that cannot help', () => {
  test('CAS-54 CAS-55 CAS-65 each says why, and a healthy one still grows', async () => {
    const template = aNode('t')
    const scene = {
      groups: [
        { group: aGroup('full', { targetSize: 10 }), node: template },
        { group: aGroup('failing'), node: template },
        { group: aGroup('sick'), node: template },
        { group: aGroup('unseen') },
      ],
      safety: { failing: 'backoff', sick: 'unhealthy' } as const,
      pods: [aPod('p', { cpu: '1' })],
    }
    const { result } = await scaleUp(scene)
    assert.ok(result.kind === 'noOptions')
    assert.equal(
      refusalOf(result.refusals, scene.pods[0]),
      '2 not ready for scale-up, 1 in backoff after failed scale-up, 1 max node group size reached',
    )
    const helped = await scaleUp({
      ...scene,
      groups: [...scene.groups, { group: aGroup('ok'), node: template }],
    })
    assert.equal(helped.sizes['ok'], 2)
  })

  test('a group whose cloud is at fault is left out with its reason', async () => {
    const scene = {
      groups: [
        { group: aGroup('bad'), node: aNode('t') },
        { group: aGroup('good'), node: aNode('u') },
      ],
      faults: new Map([['bad', 'GET /instance-pool/bad answered 500']]),
      pods: [aPod('p', { cpu: '1' })],
    }
    assert.deepEqual((await scaleUp(scene)).sizes, { bad: 1, good: 2 })
    const alone = await scaleUp({ ...scene, groups: scene.groups.slice(0, 1) })
    assert.ok(alone.result.kind === 'noOptions')
    assert.equal(
      refusalOf(alone.result.refusals, scene.pods[0]),
      '1 not ready for scale-up (GET /instance-pool/bad answered 500)',
    )
  })

  test('filters refuse in the words of the scheduler', async () => {
    const scene = {
      groups: [
        { group: aGroup('small'), node: aNode('t', { cpu: '1' }) },
        { group: aGroup('tainted'), node: aNode('u', { taints: [{ key: 'k', effect: 'NoSchedule' }] }) },
      ],
      pods: [aPod('p', { cpu: '3' })],
    } as const
    const { result } = await scaleUp(scene)
    assert.ok(result.kind === 'noOptions')
    assert.equal(
      refusalOf(result.refusals, scene.pods[0]),
      '1 Insufficient cpu, 1 node(s) had untolerated taint {k: }',
    )
  })

  test('CAS-53 cores in total allow one more node, then none', async () => {
    const scene = {
      groups: [{ group: aGroup('g'), node: aNode('t', { cpu: '4' }) }],
      pods: pods('a', 3, { cpu: '3' }),
      options: { cores: { min: 0, max: 16 } },
    }
    const nodes = [aNode('a'), aNode('b'), aNode('c')]
    assert.deepEqual((await scaleUp({ ...scene, nodes, running: blockers(nodes) })).sizes, { g: 2 })
    const more = [...nodes, aNode('d')]
    const none = await scaleUp({ ...scene, nodes: more, running: blockers(more) })
    assert.ok(none.result.kind === 'noOptions')
    assert.equal(
      refusalOf(none.result.refusals, scene.pods[0]),
      '1 exceeded quota: "cluster-wide", resources: cpu',
    )
    assert.equal(
      none.metrics.of('skipped_scale_events_count', { direction: 'up', reason: 'CpuResourceLimit' }),
      1,
    )
  })

  test('CAS-52 max-nodes-total leaves two of the five nodes that are needed', async () => {
    const nodes = Array.from({ length: 8 }, (_, index) => aNode(`n${index}`))
    const { sizes } = await scaleUp({
      groups: [{ group: aGroup('g', { targetSize: 8, maxSize: 20 }), node: aNode('t') }],
      nodes,
      running: blockers(nodes),
      pods: pods('a', 5, { cpu: '3' }),
      options: { maxNodesTotal: 10 },
    })
    assert.deepEqual(sizes, { g: 10 })
  })
})

/** A pod that fills each node. */
function blockers(nodes: readonly { readonly metadata: { readonly name: string } }[]): Pod[] {
  return nodes.map(({ metadata: { name } }) => aPod(`fill-${name}`, { cpu: '4', nodeName: name }))
}

describe('how many nodes', () => {
  const grown = async (node: Parameters<typeof aNode>[1], list: readonly Pod[], max = 100) => {
    const { sizes } = await scaleUp({
      groups: [{ group: aGroup('g', { targetSize: 1, maxSize: max }), node: aNode('t', node) }],
      pods: list,
    })
    return (sizes['g'] ?? 0) - 1
  }

  test('CAS-49 by cpu, by number of pods, by host port, up to the limit', async () => {
    assert.equal(await grown({ cpu: '1' }, pods('a', 10, { cpu: '350m' })), 5)
    assert.equal(await grown({ pods: '10' }, pods('a', 20, { cpu: '1m' })), 2)
    const ports = { containers: [{ name: 'main', ports: [{ containerPort: 80, hostPort: 80 }] }] }
    assert.equal(await grown({}, pods('a', 8, { spec: ports })), 8)
    assert.equal(await grown({ cpu: '1' }, pods('a', 20, { cpu: '500m' }), 6), 5)
  })

  test('CAS-50 spread over hosts and zones', async () => {
    const of = (owner: string, count: number, spec: Partial<PodSpec>) =>
      pods(owner, count, { cpu: '10m', spec })
    const full = aNode('full')
    const besides = await scaleUp({
      groups: [{ group: aGroup('g', { maxSize: 100 }), node: aNode('t') }],
      nodes: [full],
      running: blockers([full]),
      pods: of('a', 8, spread('a', hostname, 2)),
    })
    assert.deepEqual(besides.sizes, { g: 5 })
    assert.equal(await grown({}, of('b', 12, spread('b', hostname, 1, 3))), 3)
    const closed = aNode('closed', { zone: 'other', taints: [{ key: 'k', effect: 'NoSchedule' }] })
    const { result, sizes, events } = await scaleUp({
      groups: [{ group: aGroup('g'), node: aNode('t', { zone: 'here' }) }],
      nodes: [closed],
      pods: of('c', 8, spread('c', zone, 2)),
    })
    assert.equal(result.kind, 'successful')
    assert.deepEqual(sizes, { g: 2 })
    assert.equal(events.of('TriggeredScaleUp').length, 2)
  })

  test('CAS-51 the bigger pods come first when nodes are limited', async () => {
    const { events } = await scaleUp({
      groups: [{ group: aGroup('g', { targetSize: 9 }), node: aNode('t', { cpu: '4' }) }],
      pods: [...pods('small', 3, { cpu: '1' }), ...pods('big', 1, { cpu: '3500m' })],
    })
    assert.deepEqual(events.of('TriggeredScaleUp'), [
      'TriggeredScaleUp Pod/big-0: pod triggered scale-up: [{g 9->10 (max: 10)}]',
    ])
  })

  test('CAS-116 a pod that a node which is there takes does not count as a new node', async () => {
    // The first pod goes to a new node; the skew sends the second to the old one and the third back.
    const { sizes, events } = await scaleUp({
      groups: [{ group: aGroup('g'), node: aNode('t') }],
      nodes: [aNode('old')],
      pods: pods('a', 3, { cpu: '500m', spec: spread('a', hostname, 1) }),
    })
    assert.deepEqual(sizes, { g: 2 })
    assert.equal(events.of('TriggeredScaleUp').length, 3)
  })

  test('judging the last kind from one node counts as packing them one by one does', async () => {
    for (const count of [1, 7, 40, 41]) {
      const scene = {
        groups: [{ group: aGroup('g', { maxSize: 1000 }), node: aNode('t') }],
        pods: pods('a', count, { cpu: '700m' }),
      }
      const exact = await scaleUp(scene)
      const fast = await scaleUp({ ...scene, options: { fastpathBinpacking: true } })
      assert.deepEqual(fast.sizes, exact.sizes)
      assert.equal(fast.events.of('TriggeredScaleUp').length, count)
    }
  })
})

describe('which group', () => {
  test('least waste takes the group whose nodes the pods fill', async () => {
    const { sizes } = await scaleUp({
      groups: [
        { group: aGroup('large'), node: aNode('t', { cpu: '16', memory: '64Gi' }) },
        { group: aGroup('tight'), node: aNode('u', { cpu: '4', memory: '8Gi' }) },
      ],
      pods: [aPod('p', { cpu: '3500m', memory: '7Gi' })],
    })
    assert.deepEqual(sizes, { large: 1, tight: 2 })
  })

  test('CAS-59 balanced groups end as level as their maxima allow', async () => {
    const template = () => aNode('t', { cpu: '1' })
    const of = (count: number) =>
      scaleUp({
        groups: [
          { group: aGroup('a', { targetSize: 2 }), node: template() },
          { group: aGroup('b', { targetSize: 5 }), node: template() },
          { group: aGroup('c', { targetSize: 9 }), node: template() },
        ],
        pods: pods('x', count, { cpu: '1' }),
        options: { balanceSimilarNodeGroups: true },
      })
    assert.deepEqual((await of(6)).sizes, { a: 7, b: 6, c: 9 })
    assert.deepEqual((await of(20)).sizes, { a: 10, b: 10, c: 10 })
  })

  test('CAS-60 a group that cannot take all kinds of pods gets no share', async () => {
    const { sizes } = await scaleUp({
      groups: [
        { group: aGroup('a'), node: aNode('t', { cpu: '1', zone: 'a' }) },
        { group: aGroup('b'), node: aNode('u', { cpu: '1', zone: 'b' }) },
      ],
      pods: [
        ...pods('x', 3, { cpu: '1' }),
        ...pods('y', 2, { cpu: '1', spec: { nodeSelector: { [zone]: 'a' } } }),
      ],
      options: { balanceSimilarNodeGroups: true, expanders: ['most-pods'] },
    })
    assert.deepEqual(sizes, { a: 6, b: 1 })
  })
})

test('salvo helps pods of several groups in one loop', async () => {
  const scene = {
    groups: [
      { group: aGroup('a'), node: aNode('t', { zone: 'a' }) },
      { group: aGroup('b'), node: aNode('u', { zone: 'b' }) },
    ],
    pods: [
      ...pods('x', 2, { cpu: '3', spec: { nodeSelector: { [zone]: 'a' } } }),
      ...pods('y', 1, { cpu: '3', spec: { nodeSelector: { [zone]: 'b' } } }),
    ],
  }
  const single = await scaleUp(scene)
  assert.equal(Object.values(single.sizes).filter((size) => size > 1).length, 1)
  const salvo = await scaleUp({ ...scene, options: { salvoScaleUp: true } })
  assert.deepEqual(salvo.sizes, { a: 3, b: 2 })
})
