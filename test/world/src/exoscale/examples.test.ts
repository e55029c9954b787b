/** The manifests of examples/exoscale, applied as they stand: each does what its comment says. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { conditionOf, type KubeObject, karpenterKinds, kinds, type Node } from '@tenon/api'
import { World } from '../world.ts'
import { applyYaml } from '../testing/apply-yaml.test-support.ts'
import { nodeClassKind } from './manifests.test-support.ts'

const minute = 60_000
const folder = resolve(import.meta.dirname, '../../../../examples/exoscale')
const files = readdirSync(folder).filter((name) => name.endsWith('.yaml') && !name.includes('workload'))
const manifests = files.flatMap((name) => readFileSync(join(folder, name), 'utf8').split(/^---\n/m))

/** What the manifests name, as `tenon up` has it. */
const resources = {
  securityGroups: [{ name: 'sks-nodes' }],
  antiAffinityGroups: [{ name: 'spread-hypervisors' }],
  privateNetworks: [{ name: 'backend' }],
  templates: [
    { id: '20000000-0000-4000-8000-000000000001', version: '1.34.0', variant: 'standard' as const },
  ],
}

function aPod(name: string, label: readonly [string, string], taint: string, limits = {}): KubeObject {
  const object = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'default' },
    spec: {
      nodeSelector: { [label[0]]: label[1] },
      tolerations: [{ key: taint, operator: 'Exists' }],
      containers: [{ name: 'app', image: 'app', resources: { requests: { cpu: '500m' }, limits } }],
    },
  }
  return object
}

const gpus = { 'nvidia.com/gpu': '1' }
/** A pod for each pool: its name, the label by which it chooses, and the taint it tolerates. */
const pods: readonly KubeObject[] = [
  ...[
    'kubelet',
    'on-demand',
    'budgets',
    'expiry',
    'template-selector',
    'weights-and-limits',
    'startup-taints',
  ].map((name) => aPod(name, ['example', name], 'example')),
  aPod('labels-and-taints', ['team', 'platform'], 'team'),
  aPod('isolated', ['karpenter.sh/nodepool', 'isolated'], 'none'),
  aPod('pinned', ['karpenter.sh/nodepool', 'standard-pinned'], 'none'),
  aPod('gpu', ['workload-type', 'gpu'], 'nvidia.com/gpu', gpus),
]
const startupTaint = 'node.cilium.io/agent-not-ready'

class Scene {
  readonly world: World

  constructor(world: World) {
    this.world = world
  }

  /** The node of a pod that runs. */
  nodeOf(pod: string): Node | undefined {
    const found = this.world.pods().find(({ metadata }) => metadata.name === pod)
    if (found?.status?.phase !== 'Running') return undefined
    return this.world.nodes().find(({ metadata }) => metadata.name === found.spec.nodeName)
  }

  instanceOf(pod: string): { readonly type: string; readonly templateId: string } | undefined {
    const name = this.nodeOf(pod)?.metadata.name
    return this.world.cluster.cloud.instances().find((instance) => instance.name === name)
  }

  waiting(): readonly string[] {
    const names = this.world.pods().map(({ metadata }) => metadata.name)
    return names.filter((name) => this.nodeOf(name) === undefined)
  }

  /** Plays the agent that takes the startup taint off. */
  takeOffStartupTaint(): void {
    for (const { metadata, spec } of this.world.nodes()) {
      const taints = spec?.taints?.filter(({ key }) => key !== startupTaint) ?? []
      if (taints.length < (spec?.taints?.length ?? 0))
        this.world.cluster.server.local.patch(kinds.node, undefined, metadata.name, { spec: { taints } })
    }
  }
}

test('every example applies, its node class becomes ready, and pods that choose its pool run there', async () => {
  const world = await World.start({ seed: 4, provider: 'exoscale' })
  const { clock, cluster } = world
  cluster.cloud.add(resources)
  for (const manifest of manifests)
    assert.deepEqual(await applyYaml(world, manifest), { status: 201, message: '' }, manifest)
  const running = await world.startOperator()
  await clock.advance(minute)
  for (const kind of [nodeClassKind, karpenterKinds.nodePool])
    for (const object of cluster.server.local.list(kind))
      assert.equal(conditionOf(object, 'Ready')?.status, 'True', object.metadata.name)

  for (const pod of pods) world.create(kinds.pod, pod)
  const scene = new Scene(world)
  await clock.advanceUntil(() => scene.waiting().length === 1, 10 * minute)
  assert.deepEqual(scene.waiting(), ['startup-taints'])
  scene.takeOffStartupTaint()
  assert.ok(await clock.advanceUntil(() => scene.waiting().length === 0, 5 * minute), 'no pod waits any more')

  assert.equal(scene.instanceOf('gpu')?.type, 'gpua30.small')
  assert.equal(scene.instanceOf('weights-and-limits')?.type, 'cpu.extra-large')
  assert.equal(scene.instanceOf('pinned')?.templateId, resources.templates[0]?.id)
  const { labels, annotations } = scene.nodeOf('labels-and-taints')?.metadata ?? {}
  assert.equal(labels?.['environment'], 'production')
  assert.equal(annotations?.['example.com/contact'], 'platform@example.com')
  assert.equal(scene.nodeOf('on-demand')?.metadata.labels?.['karpenter.sh/capacity-type'], 'on-demand')
  // The one CPU of standard.tiny less 250m and 100m.
  assert.equal(scene.nodeOf('kubelet')?.status?.allocatable?.['cpu'], '650m')
  await world.bury(running)
  await world.stop()
})
