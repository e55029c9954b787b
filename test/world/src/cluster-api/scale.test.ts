/** Numbers of pods that change quickly, on the simulated Cluster API (cluster-api.md 17). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, type KubeObject } from '@tenon/api'
import { aDeployment, deploymentKind } from '../world.ts'
import { Stage } from './stage.test-support.ts'

const minutes = 60_000

test('a hub that serves v1beta1 alone does as well', async (t) => {
  const stage = await Stage.open(t, { version: 'v1beta1' })
  stage.world.create(deploymentKind, aDeployment('web', 3, { cpu: '1200m', memory: '1Gi' }))
  await stage.settles(3, 5 * minutes)
  // Cluster API's own; the claim has `namespace/name`.
  for (const { metadata } of stage.world.nodes())
    assert.equal(metadata.annotations?.['cluster.x-k8s.io/machine'], metadata.name)
  stage.world.scale('web', 1)
  await stage.settles(1, 5 * minutes)
})

test('CAP-88 five, two, eight pods in quick succession end with eight of everything within five minutes', async (t) => {
  const stage = await Stage.open(t)
  stage.world.create(deploymentKind, aDeployment('web', 5, { cpu: '1200m', memory: '1Gi' }))
  for (const count of [2, 8]) {
    await stage.world.clock.advance(15_000)
    stage.world.scale('web', count)
  }
  await stage.settles(8, 5 * minutes)
})

test('CAP-89 three, seven, two, ten, one, five pods end with five of everything, rapidly and after each has settled', async (t) => {
  const stage = await Stage.open(t)
  stage.world.create(deploymentKind, aDeployment('web', 3, { cpu: '1200m', memory: '1Gi' }))
  for (const count of [7, 2, 10, 1, 5]) {
    await stage.world.clock.advance(10_000)
    stage.world.scale('web', count)
  }
  await stage.settles(5, 10 * minutes)
  for (const count of [7, 2, 10, 1, 5]) {
    stage.world.scale('web', count)
    await stage.settles(count, 10 * minutes)
  }
})

test('CAP-90 pods that keep apart get a node each, and without them the replicas return to none', async (t) => {
  const stage = await Stage.open(t)
  stage.world.create(deploymentKind, apart(aDeployment('web', 3, { cpu: '100m', memory: '64Mi' })))
  await stage.settles(3, 5 * minutes)
  stage.world.scale('web', 0)
  await stage.settles(0, 5 * minutes)
})

test('CAP-77 nodes of a NodePool that asks for the architecture its MachineDeployment tells do not drift', async (t) => {
  const stage = await Stage.open(t)
  stage.world.create(deploymentKind, aDeployment('web', 2, { cpu: '1200m', memory: '1Gi' }))
  await stage.settles(2, 5 * minutes)
  const before = stage.claimUids
  await stage.world.clock.advance(100 * minutes)
  assert.deepEqual(stage.claimUids, before)
  for (const claim of stage.claims) assert.notEqual(conditionOf(claim, 'Drifted')?.status, 'True')
})

function apart(deployment: KubeObject): KubeObject {
  const { spec } = deployment as KubeObject & {
    readonly spec: { readonly template: { readonly spec: object; readonly metadata: object } }
  }
  const term = { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: { app: 'web' } } }
  const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } }
  const template = { ...spec.template, spec: { ...spec.template.spec, affinity } }
  return Object.assign(deployment, { spec: { ...spec, template } })
}
