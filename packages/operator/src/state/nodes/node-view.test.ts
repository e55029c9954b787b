/** Nodes as the state shows them to the engine, and what the engine then does with a pod. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, NodeClaim, NodePool, Pod, Taint } from '@tenon/api'
import { schedule } from '@tenon/engine'
import { nodeInput, type StateNode } from './state-node.ts'
import { useOf } from '../pods/pod-index.ts'

const room = { cpu: '4', memory: '8Gi', pods: '110' }
const claim: NodeClaim = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodeClaim',
  metadata: { name: 'claim' },
  spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] },
  status: {
    providerID: 'p://1',
    capacity: { ...room, 'example.com/gpu': '1' },
    allocatable: { ...room, 'example.com/gpu': '1' },
  },
}

function aNode(taints: readonly Taint[], allocatable: Readonly<Record<string, string>> = room): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node' },
    spec: { providerID: 'p://1', taints },
    status: { capacity: allocatable, allocatable },
  }
}

function aPod(requests: Readonly<Record<string, string>> = { cpu: '1' }): Pod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pod', namespace: 'default', uid: 'pod' },
    spec: { containers: [{ name: 'app', resources: { requests } }] },
  }
}

const pool: NodePool = {
  apiVersion: 'karpenter.sh/v1',
  kind: 'NodePool',
  metadata: { name: 'default', uid: 'default' },
  spec: { template: { spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'n' }, requirements: [] } } },
}
const type = {
  name: 'large',
  requirements: [],
  offerings: [{ requirements: [], pricePerHour: 1, available: true }],
  capacity: { cpu: 8000, memory: 2 ** 34, pods: 110, 'example.com/gpu': 1 },
  overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
}

/** Where the pod goes: to the node, or to a new one. */
function placeOf(
  state: Partial<StateNode>,
  pod = aPod(),
  bound: readonly Pod[] = [],
): 'node' | 'new' | 'nowhere' {
  const joined: StateNode = {
    node: undefined,
    claim,
    providerID: 'p://1',
    name: 'node',
    isRegistered: true,
    isInitialized: false,
    isMarkedForDeletion: false,
    ...state,
  }
  const { placements, claims } = schedule({
    pods: [pod],
    nodes: [nodeInput(joined, useOf(bound))],
    pools: [{ nodePool: pool, instanceTypes: [type], usage: {} }],
    daemons: [],
    topology: { pods: [], nodes: new Map(), namespaces: new Map() },
    policy: {
      preferences: 'Respect',
      minValues: 'Strict',
      wellKnownLabels: new Set(),
      maxInstanceTypes: 600,
    },
  })
  return placements.length > 0 ? 'node' : claims.length > 0 ? 'new' : 'nowhere'
}

test('SCH-45 a managed node that is not ready is counted on until it is initialized', () => {
  const node = aNode([{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }])
  assert.equal(placeOf({ node }), 'node')
  assert.equal(placeOf({ node, isInitialized: true }), 'new')
})

test('SCH-46 a readiness taint does not keep pods off a node that is starting', () => {
  const node = aNode([{ key: 'readiness.k8s.io/x', effect: 'NoSchedule' }])
  assert.equal(placeOf({ node }), 'node')
  assert.equal(placeOf({ node, isInitialized: true }), 'new')
})

test('SCH-47 SCH-48 a start-up taint that comes back counts, and so does not-ready on a node of others', () => {
  const startup: Taint = { key: 'boot', effect: 'NoSchedule' }
  const started = { ...claim, spec: { ...claim.spec, startupTaints: [startup] } }
  assert.equal(placeOf({ node: aNode([startup]), claim: started }), 'node')
  assert.equal(placeOf({ node: aNode([startup]), claim: started, isInitialized: true }), 'new')
  const foreign = aNode([{ key: 'node.kubernetes.io/not-ready', effect: 'NoSchedule' }])
  assert.equal(placeOf({ node: foreign, claim: undefined, isInitialized: true }), 'new')
})

test('SCH-61 an extended resource that the kubelet still reports as 0 is taken from the claim', () => {
  const node = aNode([], { ...room, 'example.com/gpu': '0' })
  const wanting = aPod({ cpu: '1', 'example.com/gpu': '1' })
  assert.equal(placeOf({ node }, wanting), 'node')
  assert.equal(placeOf({ node, isInitialized: true }, wanting), 'new')
})

test('VER-18 a node takes others although devices serve an extended resource that it does not have', () => {
  const served: Pod = {
    ...aPod({ cpu: '1', 'example.com/gpu': '1' }),
    status: {
      extendedResourceClaimStatus: {
        resourceClaimName: 'pod-extended-resources-x',
        requestMappings: [
          {
            containerName: 'app',
            resourceName: 'example.com/gpu',
            requestName: 'container-0-request-1',
          },
        ],
      },
    },
  }
  for (const allocatable of [room, { ...room, 'example.com/gpu': '0' }]) {
    const state = { node: aNode([], allocatable), isInitialized: true }
    assert.equal(placeOf(state, aPod(), [served]), 'node')
    assert.equal(placeOf(state, aPod({ 'example.com/gpu': '1' }), [served]), 'new')
  }
  // A device plugin that is gone while its pods run is another matter.
  const { status: _, ...plugged } = served
  const node = aNode([], { ...room, 'example.com/gpu': '0' })
  assert.equal(placeOf({ node, isInitialized: true }, aPod(), [plugged]), 'new')
})
