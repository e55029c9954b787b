import assert from 'node:assert/strict'
import { test } from 'node:test'
import { normalizedLabel, type PodSpec, type Taint } from '@tenon/api'
import {
  featureCases,
  nodeTermCases,
  resizeCases,
  tolerationCases,
  volumeZoneCases,
} from '@tenon/api/scheduler-cases'
import { aBoundClaim, aPodUsing, aVolume, lookupsOf } from '../eligibility/storage.test-support.ts'
import { resolveVolumes, volumesAdmit } from '../eligibility/volumes.ts'
import { worstCase } from '../testing/worst-cases.test-support.ts'
import { schedule } from './schedule.ts'

/** Whether a pod finds a place where there is this node only. */
function fits(
  labels: Readonly<Record<string, string>>,
  taints: readonly Taint[],
  spec: Partial<PodSpec>,
): boolean {
  const input = worstCase('plain', 1)
  const [pod] = input.pods
  const [node] = input.nodes
  assert.ok(pod !== undefined && node !== undefined)
  const result = schedule({
    ...input,
    pods: [{ ...pod, spec: { ...pod.spec, ...spec } }],
    nodes: [{ ...node, name: 'node-1', labels: { ...node.labels, ...labels }, taints }],
    pools: [],
  })
  return result.placements.length === 1
}

test('RPB-41 the engine decides as kube-scheduler about tolerations and node affinity', () => {
  for (const each of tolerationCases)
    assert.equal(
      fits({}, [each.taint], { tolerations: [each.toleration] }),
      each.isTolerated,
      JSON.stringify(each),
    )
  for (const each of nodeTermCases) {
    const affinity = {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [each.term] } },
    }
    assert.equal(fits(each.labels, [], { affinity }), each.isMet, JSON.stringify(each))
  }
})

test('VER-37 a volume with zone labels is reached from the nodes that kube-scheduler accepts', () => {
  const policy = { wellKnownLabels: new Set<string>() }
  // The engine reads beta labels of nodes as their successors.
  const cases = volumeZoneCases.filter(({ node }) =>
    Object.keys(node).every((key) => key === normalizedLabel(key)),
  )
  assert.ok(cases.length > 7)
  for (const each of cases) {
    const volume = aVolume('pv', undefined, { labels: each.volume })
    const volumes = resolveVolumes(aPodUsing('data'), lookupsOf(aBoundClaim('data', 'pv'), volume), policy)
    assert.ok(!('kind' in volumes))
    assert.equal(volumesAdmit(volumes, each.node), each.isReachable, JSON.stringify(each))
  }
})

test('VER-38 VER-39 VER-40 the engine counts pods that are resized in place as kube-scheduler of that version', () => {
  const input = worstCase('plain', 1)
  const [pod] = input.pods
  const [node] = input.nodes
  assert.ok(pod !== undefined && node !== undefined)
  for (const { about, spec, status, cpu } of resizeCases)
    for (const resizedRequests of ['sumOfMaxima', 'maximumOfSums'] as const) {
      const placedWith = (free: number): number =>
        schedule({
          ...input,
          pods: [{ ...pod, spec: { ...pod.spec, ...spec }, status }],
          nodes: [{ ...node, available: { cpu: free, pods: 10 } }],
          pools: [],
          policy: { ...input.policy, resizedRequests },
        }).placements.length
      const needed = cpu[resizedRequests]
      const placed = [needed, needed - 1].map((free) => placedWith(free))
      assert.deepEqual(placed, [1, 0], `${about}, ${resizedRequests}`)
    }
})

test('VER-23 the engine decides as kube-scheduler about declared features', () => {
  const input = worstCase('plain', 1)
  const [pod] = input.pods
  const [node] = input.nodes
  assert.ok(pod !== undefined && node !== undefined)
  for (const each of featureCases) {
    const { declared } = each
    const { placements } = schedule({
      ...input,
      pods: [{ ...pod, spec: { ...pod.spec, ...each.spec } }],
      nodes: [{ ...node, ...(declared && { declaredFeatures: declared }) }],
      pools: [],
    })
    assert.equal(placements.length === 1, each.isMet, JSON.stringify(each))
  }
})
