import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, NodeCondition } from '@tenon/api'
import type { RepairPolicy } from '@tenon/provider'
import { ailmentOf, isHealthChange, snakeCase } from './health.ts'

const at = (minute: number) => `2026-01-01T00:${String(minute).padStart(2, '0')}:00Z`
const ready: NodeCondition = { type: 'Ready', status: 'True', lastTransitionTime: at(0) }
const pressure: NodeCondition = { type: 'MemoryPressure', status: 'True', lastTransitionTime: at(20) }
const policies: readonly RepairPolicy[] = [
  { conditionType: 'Ready', conditionStatus: 'False', tolerationMs: 30 * 60_000 },
  { conditionType: 'MemoryPressure', conditionStatus: 'True', tolerationMs: 5 * 60_000 },
]

function aNode(...conditions: readonly NodeCondition[]): Node {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' }, status: { conditions } }
}

test('LIF-136 only a condition with the type and the status of a policy is an ailment', () => {
  assert.equal(ailmentOf(aNode(ready), policies), undefined)
  assert.equal(ailmentOf(aNode({ ...ready, status: 'Unknown' }), policies), undefined)
  assert.equal(ailmentOf(aNode({ ...pressure, type: 'DiskPressure' }), policies), undefined)
  assert.equal(ailmentOf(aNode(), policies), undefined)
})

test('LIF-137 of two ailments the one whose toleration ends first counts', () => {
  const failing: NodeCondition = { ...ready, status: 'False' }
  const both = aNode(failing, pressure)
  assert.deepEqual(ailmentOf(both, policies), {
    conditionType: 'MemoryPressure',
    repairAtMs: Date.parse(at(25)),
  })
  const later = aNode({ ...pressure, lastTransitionTime: at(26) }, failing)
  assert.deepEqual(ailmentOf(later, policies), { conditionType: 'Ready', repairAtMs: Date.parse(at(30)) })
})

test('LIF-142 a condition that came, went or turned is worth a look, a heartbeat or a label is not', () => {
  const old = aNode(ready, pressure)
  const isSeen = (...conditions: readonly NodeCondition[]) =>
    isHealthChange({ kind: 'updated', old, object: aNode(...conditions) })
  assert.ok(!isSeen(pressure, { ...ready, lastHeartbeatTime: at(59), message: 'fine', reason: 'Kubelet' }))
  assert.ok(isSeen(ready))
  assert.ok(isSeen(ready, pressure, { ...pressure, type: 'DiskPressure' }))
  assert.ok(isSeen(ready, { ...pressure, type: 'DiskPressure' }))
  assert.ok(isSeen(ready, { ...pressure, status: 'False' }))
  assert.ok(isSeen(ready, { ...pressure, lastTransitionTime: at(21) }))
  assert.ok(isHealthChange({ kind: 'added', object: old }))
  assert.ok(!isHealthChange({ kind: 'deleted', object: old }))
})

test('names of conditions become label values', () => {
  assert.deepEqual(
    ['Ready', 'MemoryPressure', 'PIDPressure', 'GPUXid79Error', 'node.io/Kernel-Deadlock'].map(snakeCase),
    ['ready', 'memory_pressure', 'pid_pressure', 'gpu_xid_79_error', 'node_io_kernel_deadlock'],
  )
})
