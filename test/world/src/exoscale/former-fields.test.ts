/** Node classes as the public examples write them, with fields of earlier releases. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KubeObject, karpenterKinds, kinds, type NodePool } from '@tenon/api'
import { defaultSettings } from '@tenon/operator'
import { aDeployment, deploymentKind, World } from '../world.ts'
import { aNodeClass, aPool, nodeClassKind } from './manifests.test-support.ts'

const minute = 60_000
const types = ['standard.medium', 'standard.large']
const taint = { key: 'dedicated', value: 'gpu', effect: 'NoSchedule' } as const
const published = {
  imageGCHighThresholdPercent: 80,
  imageGCLowThresholdPercent: 70,
  kubeReserved: { cpu: '150m', memory: '512Mi', ephemeralStorage: '1Gi' },
  systemReserved: { cpu: '150m', memory: '512Mi', ephemeralStorage: '1Gi' },
  nodeLabels: { environment: 'production', team: 'platform' },
  nodeTaints: [taint],
}

/** One pod that wants a node of the labels, and tolerates the taint or not. */
function aWorkload(name: string, nodeSelector: Record<string, string>, tolerates: boolean): KubeObject {
  const deployment = aDeployment(name, 1) as KubeObject & {
    readonly spec: { readonly template: { readonly spec: object } }
  }
  const { template } = deployment.spec
  const tolerations = tolerates ? [{ key: taint.key, operator: 'Exists' }] : []
  const object = {
    ...deployment,
    spec: {
      ...deployment.spec,
      template: { ...template, spec: { ...template.spec, nodeSelector, tolerations } },
    },
  }
  return object
}

async function started(nodePool: NodePool, nodeClass: object = published): Promise<World> {
  const featureGates = { ...defaultSettings.featureGates, staticCapacity: true }
  const world = await World.start({ seed: 4, provider: 'exoscale', settings: { featureGates } })
  world.create(nodeClassKind, aNodeClass('standard', nodeClass))
  world.create(karpenterKinds.nodePool, nodePool)
  await world.startOperator()
  return world
}

const runs = (world: World, app: string): boolean =>
  world
    .pods()
    .some(({ metadata, status }) => metadata.name.startsWith(`${app}-`) && status?.phase === 'Running')

for (const replicas of [undefined, 1] as const) {
  const pool = replicas === undefined ? 'a pool' : 'a static pool'
  test(`EXO-13 nodes of ${pool} get the labels, taints and kubelet settings of their class`, async () => {
    const spec = replicas === undefined ? {} : { replicas }
    const world = await started(aPool('standard', types, spec))
    world.create(deploymentKind, aWorkload('wanted', { team: 'platform' }, true))
    assert.ok(await world.clock.advanceUntil(() => runs(world, 'wanted'), 10 * minute), 'the pod runs')
    const [node, ...others] = world.nodes()
    assert.deepEqual(others, [])
    const labels = node?.metadata.labels ?? {}
    assert.deepEqual([labels['environment'], labels['team']], ['production', 'platform'])
    assert.deepEqual(node?.spec?.taints, [taint])
    const { capacity = {}, allocatable = {} } = node?.status ?? {}
    const cpu = (text: string | undefined) =>
      text?.endsWith('m') === true ? Number.parseInt(text, 10) : Number(text) * 1000
    assert.equal(cpu(capacity['cpu']) - cpu(allocatable['cpu']), 300)
    await world.clock.advance(30 * minute)
    assert.equal(world.nodes().length, 1, 'the node does not drift')
    await world.stop()
  })
}

test('EXO-13 a pod that does not tolerate the taint of a class gets no node, and is told of the taint', async () => {
  const world = await started(aPool('standard', types))
  world.create(deploymentKind, aWorkload('other', {}, false))
  await world.clock.advance(10 * minute)
  assert.deepEqual(world.nodes(), [])
  const events = world.cluster.server.local.list(kinds.event) as readonly { readonly message?: string }[]
  assert.ok(events.some(({ message = '' }) => message.includes('does not tolerate dedicated=gpu:NoSchedule')))
  await world.stop()
})

test('EXO-13 labels, requirements and taints of the NodePool win over those of its class', async () => {
  const base = aPool('standard', types)
  const { template } = base.spec
  const own = { key: taint.key, value: 'own', effect: taint.effect }
  const world = await started({
    ...base,
    spec: {
      ...base.spec,
      template: {
        metadata: { labels: { team: 'own' } },
        spec: {
          ...template.spec,
          requirements: [
            ...template.spec.requirements,
            { key: 'environment', operator: 'In', values: ['staging'] },
          ],
          taints: [own],
        },
      },
    },
  })
  world.create(deploymentKind, aWorkload('wanted', { team: 'own', environment: 'staging' }, true))
  assert.ok(await world.clock.advanceUntil(() => runs(world, 'wanted'), 10 * minute), 'the pod runs')
  assert.deepEqual(world.nodes()[0]?.spec?.taints, [own])
  await world.stop()
})

test('EXO-13 another label in the class replaces the nodes', async () => {
  const world = await started(aPool('standard', types))
  world.create(deploymentKind, aWorkload('wanted', {}, true))
  assert.ok(await world.clock.advanceUntil(() => runs(world, 'wanted'), 10 * minute), 'the pod runs')
  const [before] = world.nodes()
  const patch = { spec: { nodeLabels: { team: 'other' } } }
  world.cluster.server.local.patch(nodeClassKind, undefined, 'standard', patch)
  const isReplaced = () =>
    world
      .nodes()
      .every(
        ({ metadata }) => metadata.name !== before?.metadata.name && metadata.labels?.['team'] === 'other',
      )
  assert.ok(await world.clock.advanceUntil(() => world.nodes().length > 0 && isReplaced(), 30 * minute))
  await world.stop()
})
