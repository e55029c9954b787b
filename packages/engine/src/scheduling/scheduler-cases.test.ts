import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { PodSpec, Taint } from '@tenon/api'
import { nodeTermCases, tolerationCases } from '@tenon/api/scheduler-cases'
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
