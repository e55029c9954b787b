import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Container, Volume } from '@tenon/api'
import {
  bufferOf,
  BufferPods,
  bufferPodsOf,
  type BufferSource,
  isBufferPod,
  mostBufferPods,
} from './buffer-pods.ts'

const app: Container = { name: 'app', resources: { requests: { cpu: '1' } } }
function aSource(more: Partial<BufferSource> = {}): BufferSource {
  return {
    namespace: 'default',
    name: 'web',
    uid: 'buffer',
    replicas: 3,
    template: {
      metadata: { labels: { app: 'web' }, annotations: { note: 'x' } },
      spec: { containers: [app] },
    },
    builtAt: '2026-01-01T00:00:00Z',
    ...more,
  }
}
const uidOf = ({ metadata }: { readonly metadata: { readonly uid?: string } }) => metadata.uid ?? ''

test('BUF-17 pods of a buffer have stable names and UIDs, the labels of the template and the least priority', () => {
  const pods = bufferPodsOf(aSource())
  assert.deepEqual(
    pods.map(({ metadata: { name, namespace, uid } }) => [name, namespace, uid]),
    [1, 2, 3].map((n) => [`capacity-buffer-web-${n}`, 'default', `buffer-${n}`]),
  )
  for (const { metadata, spec, status } of pods) {
    assert.deepEqual(metadata.labels, { app: 'web' })
    assert.deepEqual(metadata.annotations, {
      'karpenter.sh/capacity-buffer-fake-pod': 'true',
      'karpenter.sh/capacity-buffer-name': 'web',
      'karpenter.sh/capacity-buffer-namespace': 'default',
    })
    assert.equal(spec.priority, -2_147_483_648)
    assert.equal(status?.phase, undefined)
    assert.deepEqual(
      status?.conditions?.map(({ type, status: value, reason }) => [type, value, reason]),
      [['PodScheduled', 'False', 'Unschedulable']],
    )
    assert.equal(metadata.ownerReferences, undefined)
  }
  assert.ok(pods.every(isBufferPod))
  assert.equal(pods[0] && bufferOf(pods[0]), 'default/web')
})

test('BUF-18 volumes of single pods go with their mounts, others stay; so does all that decides where pods go', () => {
  const configured: Volume & { readonly configMap: object } = { name: 'config', configMap: { name: 'c' } }
  const claimed: Volume = { name: 'data', persistentVolumeClaim: { claimName: 'data' } }
  const scratch: Volume = { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: {} } } }
  const volumeMounts = ['config', 'data', 'scratch'].map((name) => ({ name, mountPath: `/${name}` }))
  const placed = {
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'gpu', operator: 'Exists' }],
    hostNetwork: true,
    resourceClaims: [{ name: 'gpu', resourceClaimName: 'shared' }],
  } as const
  const [pod] = bufferPodsOf(
    aSource({
      template: {
        spec: {
          ...placed,
          nodeName: 'somewhere',
          containers: [{ ...app, volumeMounts }],
          initContainers: [{ ...app, name: 'init', volumeMounts }],
          volumes: [configured, claimed, scratch],
        },
      },
    }),
  )
  assert.deepEqual(pod?.spec.volumes, [configured])
  for (const { volumeMounts: kept } of [...(pod?.spec.containers ?? []), ...(pod?.spec.initContainers ?? [])])
    assert.deepEqual(
      kept?.map(({ name }) => name),
      ['config'],
    )
  assert.equal(pod?.spec.nodeName, undefined)
  for (const [field, value] of Object.entries(placed))
    assert.deepEqual(pod?.spec[field as keyof typeof placed], value)
})

test('BUF-21 buffers of one name in two namespaces are two; what is the same stays the same objects', () => {
  const state = new BufferPods()
  state.put(aSource())
  state.put(aSource({ namespace: 'other', uid: 'second', replicas: 1 }))
  assert.equal(state.all().length, 4)
  const before = state.of('default/web')
  state.put(aSource({ builtAt: '2026-01-01T00:01:00Z' }))
  assert.equal(state.of('default/web'), before)
  assert.equal(state.drop('other/web'), true)
  assert.equal(state.drop('other/web'), false)
  assert.deepEqual(state.all(), before)
})

test('BUF-31 BUF-32 what a pass found takes the place of all that was known', () => {
  const state = new BufferPods()
  state.known()
  state.put(aSource())
  assert.equal(state.isUndecided, true)
  const hosts = new Map(state.all().map((pod, at) => [uidOf(pod), at < 2 ? 'a' : 'b']))
  assert.equal(state.decided(state.all(), hosts, 1), true)
  assert.equal(state.isUndecided, false)
  const counts = () => [...state.kept()].map(([host, rooms]) => [host, rooms.map(({ pods }) => pods.length)])
  assert.deepEqual(counts(), [
    ['a', [2]],
    ['b', [1]],
  ])
  assert.equal(state.decided(state.all(), hosts, 2), false, 'the same room as before')
  state.put(aSource({ replicas: 1 }))
  assert.equal(state.isUndecided, false, 'fewer pods need no other room')
  state.decided(state.all(), new Map([['buffer-1', 'a']]), 3)
  assert.deepEqual(counts(), [['a', [1]]])
  assert.equal(state.decided([], new Map(), 4), true)
  assert.deepEqual(counts(), [])
})

test('more pods than any buffer is for are not made', () => {
  assert.equal(bufferPodsOf(aSource({ replicas: 2_147_483_647 })).length, mostBufferPods)
  assert.equal(bufferPodsOf(aSource({ replicas: -1 })).length, 0)
})
