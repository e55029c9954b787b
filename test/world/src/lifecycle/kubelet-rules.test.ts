/** What a kubelet may not do by itself, and what its names may be: its node joins all the same. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { isConditionTrue, karpenterKinds, kinds, type NodePool, ownValue } from '@tenon/api'
import { type CleverNodeClass, cleverNodeClassKind } from '@tenon/provider-clever-cloud'
import { clusterAPINodeClassKind } from '@tenon/provider-cluster-api'
import { simulatedKinds } from '@tenon/simulator-cluster-api'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import {
  aNodeClass as anExoscaleClass,
  aPool as anExoscalePool,
  nodeClassKind,
} from '../exoscale/manifests.test-support.ts'
import { aPool as aCleverPool } from '../clever-cloud/stage.test-support.ts'
import {
  aClusterApiClass,
  aMachineDeployment,
  aPool as aClusterApiPool,
} from '../cluster-api/stage.test-support.ts'
import { aDeployment, aKwokPool, deploymentKind, World } from '../world.ts'

const minute = 60_000
const longName = 'p'.repeat(63)
/** Labels of Kubernetes' domains: kubelet may set the last two itself. */
const own = {
  'node-role.kubernetes.io/worker': '',
  'k8s.io/team': 'data',
  'example.k8s.io/team': 'data',
  'topology.kubernetes.io/rack': 'r1',
  'node-restriction.kubernetes.io/tenant': 'a',
  'node.kubernetes.io/pool': 'a',
  'example.com/team': 'data',
}
const requirements = [
  { key: 'kubernetes.io/tier', operator: 'In' as const, values: ['gold'] },
  { key: 'node-restriction.kubernetes.io/choice', operator: 'Exists' as const },
]

const cleverNodeClass: CleverNodeClass = {
  apiVersion: 'karpenter.clever-cloud.com/v1alpha1',
  kind: 'CleverNodeClass',
  metadata: { name: 'default' },
  spec: { labels: {} },
}

type Provider = 'exoscale' | 'clever-cloud' | 'cluster-api' | 'kwok'

function poolOf(provider: Provider, name: string): NodePool {
  if (provider === 'exoscale') {
    const pool = anExoscalePool(name, ['standard.medium'])
    const { template } = pool.spec
    const nodeClassRef = { ...template.spec.nodeClassRef, name: 'standard' }
    return {
      ...pool,
      spec: { ...pool.spec, template: { ...template, spec: { ...template.spec, nodeClassRef } } },
    }
  }
  if (provider === 'clever-cloud') return { ...aCleverPool(), metadata: { name } }
  if (provider === 'cluster-api') return { ...aClusterApiPool([]), metadata: { name } }
  return aKwokPool(name)
}

/** @param classLabels that the node class gives its nodes, of providers whose classes do. */
async function open(
  t: TestContext,
  provider: Provider,
  classLabels: Readonly<Record<string, string>> = {},
): Promise<World> {
  const world = await World.start({ seed: 5, provider })
  if (provider === 'exoscale')
    world.create(nodeClassKind, anExoscaleClass('standard', { nodeLabels: classLabels }))
  if (provider === 'clever-cloud')
    world.create(cleverNodeClassKind, { ...cleverNodeClass, spec: { labels: classLabels } })
  if (provider === 'cluster-api') {
    world.create(clusterAPINodeClassKind, aClusterApiClass)
    world.create(simulatedKinds('cluster.x-k8s.io', 'v1beta2').deployment, aMachineDeployment('v1beta2'))
  }
  if (provider === 'kwok') {
    const about = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
    world.create(kwokNodeClassKind, { ...about, metadata: { name: 'default' } })
  }
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  return world
}

for (const provider of ['exoscale', 'clever-cloud', 'cluster-api', 'kwok'] as const) {
  test(`RPB-14 ${provider}: a node joins whatever labels its pool gives it, and has them`, async (t) => {
    const world = await open(t, provider)
    const pool = poolOf(provider, 'labelled')
    const { template } = pool.spec
    world.create(karpenterKinds.nodePool, {
      ...pool,
      spec: {
        ...pool.spec,
        template: {
          ...template,
          metadata: { ...template.metadata, labels: own },
          spec: { ...template.spec, requirements: [...template.spec.requirements, ...requirements] },
        },
      },
    })
    const nodeSelector = {
      'node-role.kubernetes.io/worker': '',
      'kubernetes.io/tier': 'gold',
      'node-restriction.kubernetes.io/choice': 'b',
    }
    const web = aDeployment('web', 1)
    const { template: pods } = web.spec
    const steered = { ...pods, spec: { ...pods.spec, nodeSelector } }
    const deployment = { ...web, spec: { ...web.spec, template: steered } }
    world.create(deploymentKind, deployment)
    await world.clock.advance(5 * minute)
    const claims = world.claims()
    assert.equal(claims.length, 1)
    assert.ok(claims.every((claim) => isConditionTrue(claim, 'Registered')))
    const node = world.cluster.server.local.get(kinds.node, undefined, claims[0]?.status?.nodeName ?? '')
    for (const [key, value] of Object.entries({ ...own, ...nodeSelector }))
      assert.equal(ownValue(node?.metadata.labels, key), value, key)
    assert.ok(world.pods().every(({ spec }) => spec.nodeName === node?.metadata.name))
  })

  // A provider may make the Node itself: only its initialization shows that a kubelet joined.
  test(`RPB-15 ${provider}: nodes of a pool whose name has 63 characters register`, async (t) => {
    const world = await open(t, provider)
    world.create(karpenterKinds.nodePool, poolOf(provider, longName))
    world.create(deploymentKind, aDeployment('web', 1))
    await world.clock.advance(5 * minute)
    const claims = world.claims()
    assert.equal(claims.length, 1)
    assert.ok(claims.every((claim) => isConditionTrue(claim, 'Initialized')))
    const node = world.cluster.server.local.get(kinds.node, undefined, claims[0]?.status?.nodeName ?? '')
    if (provider !== 'kwok') assert.ok((node?.metadata.name.length ?? 64) <= 63, node?.metadata.name)
    assert.ok((ownValue(node?.metadata.labels, 'kubernetes.io/hostname') ?? '').length <= 63)
  })
}

test('RPB-14 exoscale: a node joins whatever labels its node class gives it, and has them', async (t) => {
  const world = await open(t, 'exoscale', own)
  world.create(karpenterKinds.nodePool, poolOf('exoscale', 'labelled'))
  world.create(deploymentKind, aDeployment('web', 1))
  await world.clock.advance(5 * minute)
  const [claim] = world.claims()
  assert.ok(claim !== undefined && isConditionTrue(claim, 'Initialized'))
  const node = world.cluster.server.local.get(kinds.node, undefined, claim.status?.nodeName ?? '')
  for (const [key, value] of Object.entries(own))
    assert.equal(ownValue(node?.metadata.labels, key), value, key)
})

test('RPB-14 clever-cloud: a node joins whatever labels of Kubernetes its node class names', async (t) => {
  const admitted = Object.fromEntries(Object.entries(own).filter(([key]) => !key.startsWith('node.k')))
  const world = await open(t, 'clever-cloud', admitted)
  world.create(karpenterKinds.nodePool, poolOf('clever-cloud', 'labelled'))
  world.create(deploymentKind, aDeployment('web', 1))
  await world.clock.advance(5 * minute)
  const [claim] = world.claims()
  assert.ok(claim !== undefined && isConditionTrue(claim, 'Initialized'))
  const node = world.cluster.server.local.get(kinds.node, undefined, claim.status?.nodeName ?? '')
  assert.equal(ownValue(node?.metadata.labels, 'example.com/team'), 'data')
})
