import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type ConfigMap, kinds } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { MemoryKube } from '@tenon/provider/contract-suite'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { StatusConfigMap } from './status-config-map.ts'
import type { RunningReport } from './status-report.ts'

const { signal } = new AbortController()
const key = { namespace: 'kube-system', name: 'cluster-autoscaler-status' }
const none = {
  registered: 0,
  ready: 0,
  notStarted: 0,
  suspended: 0,
  beingDeleted: 0,
  unready: 0,
  resourceUnready: 0,
  longUnregistered: 0,
  unregistered: 0,
}
const running: RunningReport = {
  kind: 'running',
  message: '',
  cluster: { isHealthy: true, counts: none, isScalingUp: false, candidates: 0 },
  groups: [],
  faults: new Map(),
  holds: new Map(),
  quotas: [],
}

function stage() {
  const clock = new VirtualClock()
  const kube = new MemoryKube(clock)
  const logged: string[] = []
  const logger = { ...silentLogger, warn: (message: string) => logged.push(message) }
  const status = new StatusConfigMap({ client: kube, clock, logger, ...key })
  const stored = () => kube.all(kinds.configMap)[0]
  return { clock, kube, status, stored, logged }
}

test('CAS-100 first it says Initializing, then Running in each loop, with the time in an annotation', async () => {
  const { clock, kube, status, stored } = stage()
  assert.deepEqual(status.reference.metadata, key)
  await status.write({ kind: 'initializing', message: '' }, signal)
  assert.match(stored()?.data?.['status'] ?? '', /autoscalerStatus: Initializing\n/)
  await clock.advance(10_000)
  await status.write(running, signal)
  const { data, metadata } = stored() ?? { metadata: { annotations: undefined } }
  assert.match(
    data?.['status'] ?? '',
    /^autoscalerStatus: Running\n[^]*\ntime: 2026-01-01 00:00:10 \+0000 UTC\n$/,
  )
  assert.deepEqual(metadata.annotations, {
    'cluster-autoscaler.kubernetes.io/last-updated': '2026-01-01 00:00:10 +0000 UTC',
  })
  assert.deepEqual(
    kube.writes.map(({ verb }) => verb),
    ['create', 'update'],
  )
  assert.deepEqual(status.reference.metadata, { ...key, uid: stored()?.metadata.uid })
})

test('what others keep in it stays', async () => {
  const { kube, status, stored } = stage()
  const metadata = { ...key, labels: { team: 'a' }, annotations: { note: 'b' } }
  kube.put<ConfigMap>(kinds.configMap, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata,
    data: { other: 'c' },
  })
  await status.write(running, signal)
  assert.deepEqual(Object.keys(stored()?.data ?? {}), ['other', 'status'])
  assert.deepEqual(stored()?.metadata.labels, { team: 'a' })
  assert.equal(stored()?.metadata.annotations?.['note'], 'b')
})

test('a status that cannot be written is logged, and written in the next loop', async () => {
  const { kube, status, stored, logged } = stage()
  kube.failures.push({
    verb: 'create',
    plural: 'configmaps',
    error: new KubeError('server', 500, 'etcd is away'),
  })
  await status.write(running, signal)
  assert.deepEqual([logged, stored()], [['status not written'], undefined])
  await status.write(running, signal)
  assert.ok(stored())
})

test('CAS-38 it is removed at the end, and not written again by what was under way', async () => {
  const { status, stored, logged } = stage()
  const writing = status.write(running, signal)
  await status.remove(signal)
  await writing
  await status.write(running, signal)
  assert.deepEqual([stored(), logged], [undefined, []])
})
