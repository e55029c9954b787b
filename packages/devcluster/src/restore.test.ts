import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds, type KubeObject, type Node, type Pod } from '@tenon/api'
import { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { createCredentials } from './apiserver/index.ts'
import { startDevCluster } from './dev-cluster.ts'
import { restoreObjects } from './restore.ts'

const since = '2025-12-31T00:00:00Z'

test('a restored node that was Ready and its pod go on as they were', async () => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1), 1)
  const cluster = startDevCluster({
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    credentials: await createCredentials(clock.now()),
    simulator: { prepare: () => undefined, start: () => ({ stop: () => undefined }) },
  })
  restoreObjects(cluster.server, [
    { type: kinds.node, object: node },
    { type: kinds.pod, object: pod },
  ])
  cluster.kubelets.start({
    nodeName: 'a',
    providerId: '',
    labels: {},
    taints: [],
    capacity: { cpu: '4', pods: '10' },
    allocatable: { cpu: '4', pods: '10' },
    addresses: [],
    kubeletVersion: 'v1.34.1',
    systemUuid: 'a',
    wasReady: true,
  })
  await clock.advance(120_000)
  const api = cluster.server.local
  const ready = api.get(kinds.node, undefined, 'a')?.status?.conditions?.find(({ type }) => type === 'Ready')
  assert.deepEqual({ status: ready?.status, since: ready?.lastTransitionTime }, { status: 'True', since })
  const running = api.get(kinds.pod, 'default', 'web')
  assert.equal(running?.metadata.uid, 'pod-web')
  assert.equal(running?.metadata.creationTimestamp, since)
  assert.equal(running?.status?.startTime, since)
  cluster.stop()
})

test('a controller that is left out does nothing, and its neighbours work', async () => {
  const clock = new VirtualClock(Date.UTC(2026, 0, 1), 1)
  const cluster = startDevCluster({
    clock,
    random: new SeededRandom(1),
    logger: silentLogger,
    credentials: await createCredentials(clock.now()),
    controllers: { without: ['replicaset-controller'] },
    simulator: { prepare: () => undefined, start: () => ({ stop: () => undefined }) },
  })
  const labels = { app: 'web' }
  const template = { metadata: { labels }, spec: { containers: [{ name: 'app', image: 'app' }] } }
  const workload = (kind: string): KubeObject => {
    const metadata = { name: kind.toLowerCase(), namespace: 'default' }
    const spec = { replicas: 2, serviceName: 'web', selector: { matchLabels: labels }, template }
    const object = { apiVersion: 'apps/v1', kind, metadata, spec }
    return object
  }
  const api = cluster.server.local
  api.create<KubeObject>(kinds.replicaSet, workload('ReplicaSet'))
  api.create<KubeObject>(kinds.statefulSet, workload('StatefulSet'))
  await clock.advance(10_000)
  assert.deepEqual(
    api.list(kinds.pod).map(({ metadata }) => metadata.name),
    ['statefulset-0'],
  )
  cluster.stop()
})

const node: Node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: { name: 'a', uid: 'node-a', creationTimestamp: since },
  spec: {},
  status: {
    capacity: { cpu: '4', pods: '10' },
    allocatable: { cpu: '4', pods: '10' },
    conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: since, lastTransitionTime: since }],
  },
}

const pod: Pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web', namespace: 'default', uid: 'pod-web', creationTimestamp: since },
  spec: { nodeName: 'a', containers: [{ name: 'app', image: 'app' }] },
  status: {
    phase: 'Running',
    startTime: since,
    conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: since }],
  },
}
