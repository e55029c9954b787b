import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Container, ownerOf, type Pod, podRequests } from '@tenon/api'
import { assert as holds, boolean, constantFrom, option, property, record, tuple } from 'fast-check'
import { PodTrimmer } from './trim.ts'

const quantity = constantFrom('100m', '250m', '1', '1500m')
const list = record({ cpu: quantity, memory: constantFrom('64Mi', '1Gi') }, { requiredKeys: [] })

const container = (name: string) =>
  record({ requests: list, restartPolicy: constantFrom('Always' as const, undefined) }).map(
    ({ requests, restartPolicy }): Container => ({
      name,
      image: 'app:1',
      resources: { requests, limits: requests },
      ...(restartPolicy !== undefined && { restartPolicy }),
    }),
  )

const statusOf = (name: string) =>
  record({ requests: list, allocated: option(list), hasResources: boolean() }).map(
    ({ allocated, hasResources, requests }) => ({
      name,
      ready: true,
      ...(hasResources && { resources: { requests } }),
      ...(allocated !== null && { allocatedResources: allocated }),
    }),
  )

const pods = record({
  containers: tuple(container('a'), container('b')),
  initContainers: tuple(container('i')),
  overhead: option(list),
  own: option(list),
  statuses: tuple(statusOf('a'), statusOf('b')),
  initStatuses: tuple(statusOf('i')),
  ofPod: option(list),
  allocatedToPod: option(list),
  reason: constantFrom('Infeasible', 'Deferred', undefined),
  nodeName: constantFrom('n1', 'n2', ''),
  hash: constantFrom('5d4f', undefined),
}).map(
  (drawn): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'web-5d4f-x',
      namespace: 'shop',
      uid: 'u1',
      resourceVersion: '7',
      annotations: { note: 'long' },
      labels: { ...(drawn.hash !== undefined && { 'pod-template-hash': drawn.hash }), app: 'web' },
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d4f', uid: 'r1', controller: true },
      ],
    },
    spec: {
      containers: drawn.containers,
      initContainers: drawn.initContainers,
      nodeName: drawn.nodeName,
      ...(drawn.overhead !== null && { overhead: drawn.overhead }),
      ...(drawn.own !== null && { resources: { requests: drawn.own } }),
    },
    status: {
      phase: 'Running',
      containerStatuses: drawn.statuses,
      initContainerStatuses: drawn.initStatuses,
      ...(drawn.ofPod !== null && { resources: { requests: drawn.ofPod } }),
      ...(drawn.allocatedToPod !== null && { allocatedResources: drawn.allocatedToPod }),
      ...(drawn.reason !== undefined && {
        conditions: [{ type: 'PodResizePending', status: 'True', reason: drawn.reason }],
      }),
    },
  }),
)

test('what is kept of a pod says the same of its requests, also while it is resized in place, and of its owner', () => {
  const trimmer = new PodTrimmer()
  holds(
    property(pods, (pod) => {
      const kept = trimmer.trim(pod)
      const placed = pod.spec.nodeName !== ''
      assert.deepEqual(
        podRequests(kept.spec, placed ? kept.status : undefined),
        podRequests(pod.spec, placed ? pod.status : undefined),
      )
      assert.deepEqual(ownerOf(kept), ownerOf(pod))
      assert.equal(kept.spec.nodeName ?? '', pod.spec.nodeName)
      assert.equal(kept.status?.phase, pod.status?.phase)
      assert.equal(kept.metadata.annotations, undefined)
    }),
  )
})

test('pods of one owner share what they have in common', () => {
  const trimmer = new PodTrimmer()
  const pod = (name: string): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'shop',
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-5d4f', uid: 'r1', controller: true },
      ],
    },
    spec: {
      nodeName: 'n1',
      containers: [{ name: 'a', resources: { requests: { cpu: '1' } } }],
    },
    status: { phase: 'Running' },
  })
  const [one, other] = [trimmer.trim(pod('a')), trimmer.trim(pod('b'))]
  assert.equal(one.spec.containers, other.spec.containers)
  assert.equal(one.status, other.status)
  assert.equal(one.metadata.ownerReferences, other.metadata.ownerReferences)
})
