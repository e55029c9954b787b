import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, NodeClaim, Pod } from '@tenon/api'
import { ObservedCluster } from './observed-cluster.test-support.ts'
import { capacityOf, nodeInput, type StateNode } from './nodes/state-node.ts'
import { useOf } from './pods/pod-index.ts'

const startup = { key: 'boot', effect: 'NoSchedule' } as const
const ephemeral = [
  { key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' },
  { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' },
  { key: 'node.kubernetes.io/unreachable', effect: 'NoSchedule' },
  { key: 'node.cloudprovider.kubernetes.io/uninitialized', value: 'true', effect: 'NoSchedule' },
  { key: 'readiness.k8s.io/x', effect: 'NoSchedule' },
  { key: 'readiness.k8s.io/x', effect: 'NoExecute' },
  { key: 'readiness.k8s.io/x', effect: 'PreferNoSchedule' },
] as const
const claim: NodeClaim = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name: 'claim', labels: { from: 'claim' } },
  spec: {
    nodeClassRef: { group: 'g', kind: 'K', name: 'n' },
    requirements: [],
    taints: [{ key: 'own', effect: 'NoSchedule' }],
    startupTaints: [startup],
  },
  status: {
    providerID: 'p://1',
    capacity: { cpu: '4', memory: '8Gi' },
    allocatable: { cpu: '3', memory: '7Gi' },
  },
}
const node: Node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'node', labels: { from: 'node' } },
  spec: { providerID: 'p://1', taints: [startup, ...ephemeral] },
  status: { capacity: { cpu: '0', pods: '110' }, allocatable: { cpu: '0', pods: '110' } },
}

const taintsOf = (state: StateNode) => nodeInput(state, useOf([])).taints
const allocatableOf = (state: StateNode) => nodeInput(state, useOf([])).available

function aState(changes: Partial<StateNode>): StateNode {
  const parts = { node, claim, providerID: 'p://1', name: 'node' }
  return { ...parts, isRegistered: true, isInitialized: true, isMarkedForDeletion: false, ...changes }
}

test('STA-33 STA-34 STA-36 before initialization start-up and ephemeral taints do not count', () => {
  assert.deepEqual(taintsOf(aState({ isInitialized: false })), [])
})

test('STA-35 STA-36 after initialization all taints of the Node count', () => {
  assert.deepEqual(taintsOf(aState({})), node.spec?.taints)
})

test('STA-37 taints of a foreign node always count', () => {
  for (const isInitialized of [true, false])
    assert.deepEqual(taintsOf(aState({ claim: undefined, isInitialized })), node.spec?.taints)
})

test('until it is registered an instance has the taints of its claim', () => {
  const own = [{ key: 'own', effect: 'NoSchedule' }]
  assert.deepEqual(taintsOf(aState({ isRegistered: false, isInitialized: false })), own)
  assert.deepEqual(taintsOf(aState({ node: undefined, isRegistered: false, isInitialized: false })), own)
})

test('STA-38 STA-39 the estimates of the claim fill what the Node does not offer yet', () => {
  const gibibyte = 2 ** 30
  assert.deepEqual(capacityOf(aState({ isInitialized: false })), {
    cpu: 4000,
    memory: 8 * gibibyte,
    pods: 110,
    nodes: 1,
  })
  assert.deepEqual(capacityOf(aState({})), { cpu: 0, pods: 110, nodes: 1 })
  assert.deepEqual(allocatableOf(aState({ isInitialized: false })), {
    cpu: 3000,
    memory: 7 * gibibyte,
    pods: 110,
  })
  assert.deepEqual(allocatableOf(aState({ node: undefined, isInitialized: false })), {
    cpu: 3000,
    memory: 7 * gibibyte,
  })
})

test('STA-19 STA-22 pods that run use a node up, daemon pods apart, ended ones not', () => {
  const pod = (name: string, phase: string, owner?: string): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      ...(owner && { ownerReferences: [{ apiVersion: 'apps/v1', kind: owner, name: 'o', uid: 'u' }] }),
    },
    spec: {
      containers: [
        {
          name: 'c',
          image: 'i',
          resources: { requests: { cpu: '500m' } },
          ports: [{ containerPort: 80, hostPort: 8080 }],
        },
      ],
    },
    status: { phase } as NonNullable<Pod['status']>,
  })
  const state = aState({ isInitialized: false })
  const use = useOf([pod('a', 'Running'), pod('b', 'Succeeded'), pod('c', 'Running', 'DaemonSet')])
  const input = nodeInput(state, use)
  assert.equal(input.available['cpu'], 2000)
  assert.equal(input.available['pods'], 108)
  assert.equal(input.daemonRequests['cpu'], 500)
  assert.equal(input.usedHostPorts.length, 2)
  assert.deepEqual(input.labels, { from: 'node' })
})

test('the deletion of a claim is news once, whatever the cache shows', () => {
  const cluster = new ObservedCluster()
  const { nodeClassRef } = claim.spec
  const seen = (uid: string, more: object = {}): NodeClaim => ({
    ...claim,
    metadata: { name: 'a', uid, ...more },
    spec: { nodeClassRef, requirements: [] },
  })
  cluster.see(seen('1'))
  assert.equal(cluster.state.noteDeletion(seen('1')), true)
  assert.equal(cluster.state.noteDeletion(seen('1')), false)
  cluster.see(seen('1', { deletionTimestamp: '2026-01-01T00:00:00Z' }))
  assert.equal(cluster.state.noteDeletion(seen('1')), false)
  cluster.miss(seen('1'))
  cluster.see(seen('2'))
  assert.equal(cluster.state.noteDeletion(seen('2')), true)
})
