import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pod } from '@tenon/api'
import { workloadOf } from './workloads.ts'

interface Parts {
  readonly owner?: { readonly kind: string; readonly name: string }
  readonly labels?: Readonly<Record<string, string>>
  readonly memory?: string
  readonly claim?: string
}

function aPod(name: string, { owner, labels, memory = '1Gi', claim }: Parts = {}): Pod {
  const references = owner && [{ apiVersion: 'apps/v1', ...owner, uid: owner.name, controller: true }]
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      ...(labels && { labels }),
      ...(references && { ownerReferences: references }),
    },
    spec: {
      containers: [{ name: 'app', resources: { requests: { memory } } }],
      ...(claim !== undefined && {
        volumes: [{ name: 'data', persistentVolumeClaim: { claimName: claim } }],
      }),
    },
  }
}

const replica = (hash: string) => ({
  owner: { kind: 'ReplicaSet', name: `web-${hash}` },
  labels: { app: 'web', 'pod-template-hash': hash },
})

const equal: readonly (readonly [string, Pod, Pod])[] = [
  ['replicas', aPod('web-1-a', replica('1')), aPod('web-1-b', replica('1'))],
  [
    'replicas of a rollout that asks for the same',
    aPod('web-1-a', replica('1')),
    aPod('web-2-c', replica('2')),
  ],
  [
    'runs of a CronJob',
    aPod('job-29000001-x', {
      owner: { kind: 'Job', name: 'job-29000001' },
      labels: { 'job-name': 'job-29000001' },
    }),
    aPod('job-29000002-y', {
      owner: { kind: 'Job', name: 'job-29000002' },
      labels: { 'job-name': 'job-29000002' },
    }),
  ],
  [
    'pods of a StatefulSet, each with a volume of its own',
    aPod('db-0', {
      owner: { kind: 'StatefulSet', name: 'db' },
      claim: 'data-db-0',
      labels: { 'apps.kubernetes.io/pod-index': '0' },
    }),
    aPod('db-1', {
      owner: { kind: 'StatefulSet', name: 'db' },
      claim: 'data-db-1',
      labels: { 'apps.kubernetes.io/pod-index': '1' },
    }),
  ],
  ['a pod and the same made anew', aPod('lone'), aPod('lone')],
]

for (const [what, one, other] of equal)
  test(`RPT-4 one workload: ${what}`, () => {
    assert.equal(workloadOf(one), workloadOf(other))
  })

const different: readonly (readonly [string, Pod, Pod])[] = [
  [
    'pods that ask for different amounts',
    aPod('web-1-a', replica('1')),
    aPod('web-2-a', { ...replica('2'), memory: '2Gi' }),
  ],
  [
    'pods of two owners',
    aPod('a', { owner: { kind: 'ReplicaSet', name: 'a' } }),
    aPod('a', { owner: { kind: 'ReplicaSet', name: 'b' } }),
  ],
  ['two pods without an owner', aPod('a'), aPod('b')],
  ['pods with other labels', aPod('a', { labels: { tier: 'one' } }), aPod('a', { labels: { tier: 'two' } })],
]

for (const [what, one, other] of different)
  test(`RPT-4 not one workload: ${what}`, () => {
    assert.notEqual(workloadOf(one), workloadOf(other))
  })
