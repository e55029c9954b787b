import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { NodePool, Taint } from '@tenon/api'
import { capacityAnnotations } from '../names.ts'
import { clusterAPINodeClassKind } from '../node-class.ts'
import { aParticipant } from '../testing/deployments.test-support.ts'
import { fitsPool } from './node-taints.ts'

const annotated = (text: string) => ({ annotations: { [capacityAnnotations.taints]: text } })

function aPool(own: {
  readonly taints?: readonly Taint[]
  readonly startupTaints?: readonly Taint[]
}): NodePool {
  const { group, kind } = clusterAPINodeClassKind
  const nodeClassRef = { group, kind, name: 'default' }
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'default' },
    spec: { template: { spec: { nodeClassRef, requirements: [], ...own } } },
  }
}

test('CAP-83 entries that are no taint are left out and told', () => {
  const participant = aParticipant(annotated('k=v:NoSchedule,bad::x,k2:NoExecute,k3=v3,:NoSchedule'))
  assert.deepEqual(participant.taints, [
    { key: 'k', value: 'v', effect: 'NoSchedule' },
    { key: 'k2', effect: 'NoExecute' },
  ])
  for (const wrong of ['bad::x', 'k3=v3', ':NoSchedule'])
    assert.ok(participant.warnings.some((text) => text.includes(`"${wrong}" is left out`)))
})

test('the annotation takes the place of a taint of the template with the same key and effect', () => {
  const taints = [
    { key: 'a', value: '1', effect: 'NoSchedule', propagation: 'Always' },
    { key: 'b', effect: 'NoExecute', propagation: 'OnInitialization' },
  ] as const
  const participant = aParticipant({ ...annotated('a=2:NoSchedule'), template: { spec: { taints } } })
  assert.deepEqual(participant.taints, [
    { key: 'a', value: '2', effect: 'NoSchedule' },
    { key: 'b', effect: 'NoExecute' },
  ])
})

test('taints that go once a node is there are none of its own', () => {
  const text =
    'karpenter.sh/unregistered:NoExecute,node.cluster.x-k8s.io/uninitialized:NoSchedule,node.cloudprovider.kubernetes.io/uninitialized:NoSchedule'
  assert.deepEqual(aParticipant(annotated(text)).taints, [])
})

test('a NodePool gets it only if its template knows of every taint that keeps pods away', () => {
  const participant = aParticipant(annotated('gpu=yes:NoSchedule,soft:PreferNoSchedule'))
  assert.match(participant.warnings.join(), /taints gpu=yes:NoSchedule: only NodePools get it/)
  assert.ok(!fitsPool(participant, aPool({})))
  assert.ok(fitsPool(participant, aPool({ taints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] })))
  assert.ok(
    fitsPool(participant, aPool({ startupTaints: [{ key: 'gpu', value: 'yes', effect: 'NoSchedule' }] })),
  )
  assert.ok(!fitsPool(participant, aPool({ taints: [{ key: 'gpu', value: 'no', effect: 'NoSchedule' }] })))
  assert.ok(fitsPool(aParticipant(), aPool({})))
})
