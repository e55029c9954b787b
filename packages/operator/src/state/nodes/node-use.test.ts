/** What pods take of the nodes they are on. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Pod, PodSpec } from '@tenon/api'
import { hostPortsOf } from '@tenon/engine'
import { aClaim, aNode, aPod } from './nodes.test-support.ts'
import { nodeInput } from './state-node.ts'
import { ObservedCluster } from '../observed-cluster.test-support.ts'

const daemon = {
  ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', uid: 'agent' }],
}
const port: Partial<PodSpec> = {
  containers: [{ name: 'app', ports: [{ containerPort: 80, hostPort: 8080 }] }],
}
const volume: Partial<PodSpec> = {
  volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'data' } }],
}

/** A cluster with nodes `one` and `two`, and what their pods take. */
function twoNodes() {
  const cluster = new ObservedCluster()
  cluster.see(aNode('one', { providerID: 'p://1' }), aNode('two', { providerID: 'p://2' }))
  const { pods } = cluster.state
  return {
    cluster,
    use: (name: string) => pods.useOf(name),
    cpu: () => ['one', 'two'].map((name) => pods.useOf(name).requests['cpu'] ?? 0),
  }
}

const ended = (pod: Pod): Pod => ({ ...pod, status: { phase: 'Succeeded' } })

describe('what pods take', () => {
  test('STA-17 a pod that has no node takes nothing', () => {
    const { cluster, cpu } = twoNodes()
    cluster.see(aPod('bound', 'one'))
    cluster.see(aPod('pending'))
    assert.deepEqual(cpu(), [1000, 0])
  })

  test('VER-40 a pod that is resized takes what the scheduler of that version counts, also after an upgrade', () => {
    const { cluster, cpu } = twoNodes()
    const shrinks = { name: 'a', resources: { requests: { cpu: '1' } } }
    const grows = { name: 'b', resources: { requests: { cpu: '2' } } }
    const granted = (name: string, amount: string) => ({
      name,
      resources: { requests: { cpu: amount } },
      allocatedResources: { cpu: amount },
    })
    const pod = aPod('resized', 'one', { containers: [shrinks, grows] })
    const resized: Pod = {
      ...pod,
      status: { ...pod.status, containerStatuses: [granted('a', '2'), granted('b', '1')] },
    }
    cluster.see(resized)
    assert.deepEqual(cpu(), [4000, 0])
    cluster.state.pods.countResized('maximumOfSums')
    assert.deepEqual(cpu(), [3000, 0])
  })

  test('STA-18 pods that were there before their node count once', () => {
    const { cluster, cpu } = twoNodes()
    cluster.see(aPod('a', 'three'), aPod('b', 'three'))
    cluster.see(aNode('three', { providerID: 'p://3', capacity: { cpu: '8', pods: '10' } }))
    cluster.see(aPod('a', 'three'))
    const state = cluster.state.stateNodes().find(({ name }) => name === 'three')
    assert.ok(state !== undefined)
    const { available } = nodeInput(state, cluster.state.pods.useOf('three'))
    assert.deepEqual(available, { cpu: 6000, pods: 8 })
    assert.deepEqual(cpu(), [0, 0])
  })

  test('STA-19 a pod that has ended takes no room, ports or volumes any more', () => {
    const { cluster, use } = twoNodes()
    const pod = aPod('pod', 'one', { ...port, ...volume })
    cluster.see(pod)
    assert.deepEqual(use('one').requests, { pods: 1 })
    assert.equal(use('one').hostPorts.length, 1)
    assert.deepEqual(use('one').podsWithVolumes, [pod])
    cluster.see(ended(pod))
    assert.deepEqual(use('one'), {
      requests: {},
      daemonRequests: {},
      servedByDevices: [],
      hostPorts: [],
      podsWithVolumes: [],
    })
  })

  test('STA-20 a pod whose name comes back on another node takes room there only', () => {
    const { cluster, cpu, use } = twoNodes()
    cluster.see(aPod('web-0', 'one', port))
    cluster.see(aPod('web-0', 'two', port, { uid: 'another' }))
    assert.deepEqual(
      ['one', 'two'].map((name) => use(name).hostPorts.length),
      [0, 1],
    )
    cluster.see(aPod('db-0', 'one'))
    assert.deepEqual(cpu(), [1000, 0])
    cluster.see(aPod('db-0', 'two', {}, { uid: 'another-db' }))
    assert.deepEqual(cpu(), [0, 1000])
    assert.deepEqual(
      cluster.state.pods.bound().map(({ metadata }) => metadata.uid),
      ['another', 'another-db'],
    )
  })

  test('STA-21 many pods that come and go leave nothing', () => {
    const { cluster, use } = twoNodes()
    const pods = Array.from({ length: 200 }, (_, i) => aPod(`pod-${i}`, i % 2 === 0 ? 'one' : 'two'))
    cluster.see(...pods)
    assert.deepEqual(use('one').requests, { cpu: 100_000, pods: 100 })
    for (const [i, pod] of pods.entries()) {
      if (i % 3 === 0) cluster.see(ended(pod))
      cluster.miss(pod)
      // Asked in between, so that every answer but the last is out of date.
      use(i % 2 === 0 ? 'one' : 'two')
    }
    assert.deepEqual([use('one').requests, use('two').requests], [{}, {}])
    assert.deepEqual(cluster.state.pods.bound(), [])
  })

  test('STA-22 a daemon pod counts among all and apart, and in neither once it is gone', () => {
    const { cluster, use } = twoNodes()
    const pod = aPod('agent-x', 'one', {}, daemon)
    cluster.see(aPod('other', 'one'), pod)
    assert.deepEqual(
      [use('one').requests, use('one').daemonRequests],
      [
        { cpu: 2000, pods: 2 },
        { cpu: 1000, pods: 1 },
      ],
    )
    cluster.miss(pod)
    assert.deepEqual([use('one').requests, use('one').daemonRequests], [{ cpu: 1000, pods: 1 }, {}])
  })

  test('STA-27 news of its claim change nothing about ports and volumes of an instance', () => {
    const { cluster, use } = twoNodes()
    const pod = aPod('pod', 'one', { ...port, ...volume })
    cluster.see(aClaim('claim', { providerID: 'p://1' }), pod)
    for (const capacity of [{ cpu: '4' }, { cpu: '5' }])
      cluster.see(aClaim('claim', { providerID: 'p://1', capacity }))
    const state = cluster.state.stateNodes().find(({ claim }) => claim !== undefined)
    assert.ok(state !== undefined)
    assert.deepEqual(nodeInput(state, use('one')).usedHostPorts, hostPortsOf(pod.spec))
    assert.deepEqual(use('one').podsWithVolumes, [pod])
  })
})
