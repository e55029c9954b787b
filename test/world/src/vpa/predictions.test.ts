/** Nodes are consolidated for what pods will ask for, not for what they were made with (buffers-and-dra.md 4). */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import {
  kinds,
  type KubeObject,
  type ResourceType,
  type VerticalPodAutoscaler,
  verticalPodAutoscalerKind,
} from '@tenon/api'
import {
  aNodeOf,
  consolidate,
  large,
  openReplacing,
  running,
  small,
  untilBegun,
} from '../disruption/replacing-stage.test-support.ts'
import { left, tainted } from '../disruption/disruption-stage.test-support.ts'
import { madeClaims } from '../testing/pools.test-support.ts'
import { minutes, intercepting, seconds, type Stage } from '../testing/stage.test-support.ts'
import { deploymentKind } from '../world.ts'

const definitionKind: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}
const { group, kind, plural, version } = verticalPodAutoscalerKind
const definition: KubeObject & { readonly spec: object } = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `${plural}.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
    versions: [
      {
        name: version,
        served: true,
        storage: true,
        schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
      },
    ],
  },
}
const replicaSetKind: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'ReplicaSet',
  plural: 'replicasets',
  namespaced: true,
}

async function open(t: TestContext, options: Parameters<typeof openReplacing>[1] = {}): Promise<Stage> {
  const stage = await openReplacing(t, { settings: { vpaPredictions: true }, ...options })
  const { local } = stage.world.cluster.server
  // None of its own makes pods: the test does.
  local.create(deploymentKind, workload('Deployment', 'web', 0, { app: 'web' }))
  local.create(replicaSetKind, workload('ReplicaSet', 'web-abc', 1, { 'pod-template-hash': 'abc' }))
  return stage
}

function workload(of: string, name: string, replicas: number, labels: Readonly<Record<string, string>>) {
  const containers = [{ name: 'app', image: 'registry.k8s.io/pause' }]
  const template = { metadata: { labels }, spec: { containers, schedulerName: 'nobody' } }
  return {
    apiVersion: 'apps/v1',
    kind: of,
    metadata: { name, namespace: 'default' },
    spec: { replicas, selector: { matchLabels: labels }, template },
  }
}

/** The pod `p` of the Deployment `web`, which asks for one core, on a large node `a`. */
async function aPodOfWeb(stage: Stage): Promise<void> {
  const owner = stage.world.cluster.server.local.get(replicaSetKind, 'default', 'web-abc')
  for (const pod of stage.world.pods()) await stage.end(pod.metadata.name)
  await aNodeOf(stage, 'a', large)
  const reference = { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-abc', controller: true }
  await running(stage, 'p', 'node-a', '1', {
    labels: { 'pod-template-hash': 'abc' },
    ownerReferences: [{ ...reference, uid: owner?.metadata.uid ?? '' }],
  })
}

function served(stage: Stage): void {
  stage.world.cluster.server.local.create(definitionKind, definition)
}

/** A VerticalPodAutoscaler of the Deployment `web` that recommends this much for `app`. */
function recommend(stage: Stage, cpu: string, name = 'web'): void {
  const { local } = stage.world.cluster.server
  const autoscaler: VerticalPodAutoscaler = {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name, namespace: 'default' },
    spec: { targetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' } },
    status: { recommendation: { containerRecommendations: [{ containerName: 'app', target: { cpu } }] } },
  }
  if (local.get(verticalPodAutoscalerKind, 'default', name) === undefined)
    local.create(verticalPodAutoscalerKind, autoscaler)
  else local.patch(verticalPodAutoscalerKind, 'default', name, { status: autoscaler.status })
}

describe('consolidation of pods with a VerticalPodAutoscaler', () => {
  test('BUF-95 BUF-98 ASK-29 a pod that will come back too large for a cheaper node keeps its own', async (t) => {
    const stage = await open(t)
    served(stage)
    recommend(stage, '3')
    await aPodOfWeb(stage)
    await stage.pass(60 * seconds)
    consolidate(stage)
    await stage.pass(12 * minutes)
    assert.deepEqual([tainted(stage), madeClaims(stage)], [[], []])
    recommend(stage, '1500m')
    assert.deepEqual(await untilBegun(stage, 10 * minutes), ['a'])
    const [made] = madeClaims(stage)
    assert.equal(made?.spec.resources?.requests?.['cpu'], '1500m', 'the new node is for what is predicted')
  })

  test('BUF-94 without the kind, pods count with what they ask for, and what was predicted goes with it', async (t) => {
    const stage = await open(t)
    await aPodOfWeb(stage)
    served(stage)
    recommend(stage, '3')
    await stage.pass(70 * seconds)
    consolidate(stage)
    await stage.pass(2 * minutes)
    assert.deepEqual(tainted(stage), [])
    stage.delete(definitionKind, definition.metadata.name)
    assert.deepEqual(await untilBegun(stage, 10 * minutes), ['a'])
    assert.equal(madeClaims(stage)[0]?.spec.resources?.requests?.['cpu'], '1')
    const errors = await stage.operator.operator.metrics.registry.getSingleMetricAsString(
      'controller_runtime_reconcile_errors_total',
    )
    assert.doesNotMatch(errors, /vpa\.prediction"\} [1-9]/)
  })

  test('BUF-100 nothing is consolidated before what pods will ask for could be read', async (t) => {
    let isDown = true
    const apiPath = intercepting((method, path) =>
      isDown && method === 'GET' && path.includes('deployments/web') ? 'error' : 'pass',
    )
    const stage = await open(t, { apiPath, idle: true })
    served(stage)
    recommend(stage, '3')
    await stage.start()
    await aPodOfWeb(stage)
    consolidate(stage)
    await stage.pass(45 * seconds)
    assert.deepEqual(tainted(stage), [])
    isDown = false
    await stage.pass(10 * minutes)
    assert.deepEqual(tainted(stage), [], 'the pod would be too large elsewhere')
  })

  test('ASK-29 a storm of resizes in place moves nothing back and forth', async (t) => {
    const stage = await open(t)
    for (const name of ['a', 'b']) {
      await aNodeOf(stage, name, small)
      await running(stage, `on-${name}`, `node-${name}`, '400m')
    }
    consolidate(stage)
    const storm = async (sizes: (turn: number) => readonly [asked: string, allocated: string]) => {
      for (let turn = 0; turn < 45; turn++) {
        for (const pod of stage.world.pods()) await resize(stage, pod.metadata.name, ...sizes(turn))
        await stage.pass(20 * seconds)
      }
    }
    await storm((turn) => [turn % 2 === 0 ? '1500m' : '400m', '1500m'])
    assert.deepEqual(left(stage), ['a', 'b'], 'what was promised to either leaves no room for both')
    await storm(() => ['400m', '400m'])
    assert.equal(left(stage).length, 1, 'there is room for both once that is done')
    await storm((turn) => [turn % 2 === 0 ? '3' : '400m', '400m'])
    assert.equal(left(stage).length, 1, 'a resize that the node defers moves nothing')
    assert.deepEqual(madeClaims(stage), [], 'nothing was launched')
  })
})

/** A resize in place: what the pod asks for now, and what its kubelet has allocated until now. */
async function resize(stage: Stage, pod: string, cpu: string, allocated: string): Promise<void> {
  const containers = [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu } } }]
  const { status } = await stage.world.kubeTransport().send({
    method: 'PATCH',
    path: `/api/v1/namespaces/default/pods/${pod}/resize`,
    headers: { 'content-type': 'application/strategic-merge-patch+json' },
    body: JSON.stringify({ spec: { containers } }),
  })
  assert.equal(status, 200)
  const resources = { requests: { cpu: allocated } }
  const containerStatuses = [{ name: 'app', allocatedResources: resources.requests, resources }]
  stage.patch(kinds.pod, pod, { status: { containerStatuses } }, 'status', 'default')
}
