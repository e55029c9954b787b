import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, type KubeObject, type ResourceType } from '@tenon/api'
import { aDeployment, aKwokPool, World } from '../world.ts'

const kwokNodeClassKind: ResourceType = {
  group: 'karpenter.kwok.sh',
  version: 'v1alpha1',
  kind: 'KWOKNodeClass',
  plural: 'kwoknodeclasses',
  namespaced: false,
}
const exoscaleNodeClassKind: ResourceType = {
  group: 'karpenter.exoscale.com',
  version: 'v1',
  kind: 'ExoscaleNodeClass',
  plural: 'exoscalenodeclasses',
  namespaced: false,
}
const deploymentKind: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'Deployment',
  plural: 'deployments',
  namespaced: true,
}

type ProviderName = 'kwok' | 'exoscale'

async function aWorld(provider: ProviderName, seed = 1): Promise<World> {
  const world = await World.start({ seed, provider })
  if (provider === 'kwok') {
    world.create(kwokNodeClassKind, {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: 'default' },
      spec: {},
    } as KubeObject)
    world.create(karpenterKinds.nodePool, aKwokPool())
    return world
  }
  world.create(exoscaleNodeClassKind, {
    apiVersion: 'karpenter.exoscale.com/v1',
    kind: 'ExoscaleNodeClass',
    metadata: { name: 'standard' },
    spec: { imageTemplateSelector: {}, diskSize: 50 },
  } as KubeObject)
  const pool = aKwokPool()
  world.create(karpenterKinds.nodePool, {
    ...pool,
    spec: {
      ...pool.spec,
      template: {
        spec: {
          nodeClassRef: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name: 'standard' },
          requirements: [
            {
              key: 'node.kubernetes.io/instance-type',
              operator: 'In',
              values: ['standard.medium', 'standard.large', 'standard.extra-large'],
            },
          ],
        },
      },
    },
  })
  return world
}

const isRunning = (world: World, count: number) =>
  world.pods().filter((pod) => pod.status?.phase === 'Running').length === count &&
  world.pods().length === count

const isEmpty = (world: World) =>
  world.claims().length === 0 && world.nodes().length === 0 && world.instancesByClaim().size === 0

const minutes = 60_000

for (const provider of ['kwok', 'exoscale'] as const) {
  describe(`${provider}: the life of a workload`, () => {
    test('pods get nodes, and the nodes go when the pods have gone', async () => {
      const world = await aWorld(provider)
      const running = await world.startOperator()
      world.create(deploymentKind, aDeployment('web', 40))
      assert.ok(await world.clock.advanceUntil(() => isRunning(world, 40), 5 * minutes), 'all pods run')
      assert.ok(world.claims().every((claim) => claim.status?.conditions?.at(-1)?.status === 'True'))
      world.scale('web', 0)
      assert.ok(await world.clock.advanceUntil(() => isEmpty(world), 10 * minutes), 'everything is gone')
      await world.bury(running)
      await world.stop()
    })

    test('a second deployment uses room that is there before it launches', async () => {
      const world = await aWorld(provider)
      const running = await world.startOperator()
      world.create(deploymentKind, aDeployment('first', 4))
      await world.clock.advanceUntil(() => isRunning(world, 4), 5 * minutes)
      const before = world.claims().length
      world.create(deploymentKind, aDeployment('second', 1, { cpu: '50m' }))
      assert.ok(await world.clock.advanceUntil(() => isRunning(world, 5), 5 * minutes))
      assert.equal(world.claims().length, before)
      await world.bury(running)
      await world.stop()
    })
  })
}
