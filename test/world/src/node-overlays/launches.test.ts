/** Prices of NodeOverlays decide which of a claim's types is launched, too. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { karpenterKinds, type KubeObject, kinds, labels, type NodePool, type ResourceType } from '@tenon/api'
import { defaultSettings, type Settings } from '@tenon/operator'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { seconds } from '../testing/stage.test-support.ts'
import { aKwokPool, World, type WorldOptions } from '../world.ts'

const exoscaleNodeClassKind: ResourceType = {
  group: 'karpenter.exoscale.com',
  version: 'v1',
  kind: 'ExoscaleNodeClass',
  plural: 'exoscalenodeclasses',
  namespaced: false,
}
const withOverlays: Partial<Settings> = {
  featureGates: { ...defaultSettings.featureGates, nodeOverlay: true },
}

/** The type that one small pod makes the operator launch, of `types`, when the overlay makes `deal` cheap. */
async function launched(
  t: TestContext,
  provider: 'kwok' | 'exoscale',
  nodeClass: KubeObject,
  { types, deal }: { readonly types: readonly string[]; readonly deal: string },
  settings: WorldOptions['settings'] = withOverlays,
): Promise<string | undefined> {
  const world = await World.start({ seed: 1, provider, settings })
  world.create(provider === 'kwok' ? kwokNodeClassKind : exoscaleNodeClassKind, nodeClass)
  const [group = ''] = nodeClass.apiVersion.split('/')
  const pool: NodePool = aKwokPool('default', {
    template: {
      spec: {
        nodeClassRef: { group, kind: nodeClass.kind, name: nodeClass.metadata.name },
        requirements: [{ key: labels.instanceType, operator: 'In', values: types }],
      },
    },
  })
  world.create(karpenterKinds.nodePool, pool)
  world.create(karpenterKinds.nodeOverlay, {
    apiVersion: 'karpenter.sh/v1alpha1',
    kind: 'NodeOverlay',
    metadata: { name: 'deal' },
    spec: {
      requirements: [{ key: labels.instanceType, operator: 'In', values: [deal] }],
      price: '0.000001',
    },
  })
  const running = await world.startOperator()
  t.after(async () => {
    await world.bury(running)
    await world.stop()
  })
  await world.clock.advance(10 * seconds)
  const requests = { cpu: '100m', memory: '64Mi' }
  world.create(kinds.pod, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pod', namespace: 'default' },
    spec: { containers: [{ name: 'app', image: 'app', resources: { requests } }] },
  })
  const type = () => world.claims()[0]?.metadata.labels?.[labels.instanceType]
  await world.clock.advanceUntil(() => type() !== undefined, 120 * seconds)
  return type()
}

const exoscaleClass: KubeObject & { readonly spec: object } = {
  apiVersion: 'karpenter.exoscale.com/v1',
  kind: 'ExoscaleNodeClass',
  metadata: { name: 'standard' },
  spec: { imageTemplateSelector: {}, diskSize: 50 },
}
const kwokClass: KubeObject & { readonly spec: object } = {
  apiVersion: 'karpenter.kwok.sh/v1alpha1',
  kind: 'KWOKNodeClass',
  metadata: { name: 'default' },
  spec: {},
}
const exoscaleTypes = { types: ['standard.small', 'standard.large'], deal: 'standard.large' }
const kwokTypes = { types: ['m-4x-amd64-linux', 'm-8x-amd64-linux'], deal: 'm-8x-amd64-linux' }

test('EXO-127 a large type that an overlay makes cheaper than a small one is created', async (t) => {
  assert.equal(await launched(t, 'exoscale', exoscaleClass, exoscaleTypes), 'standard.large')
})

test('a KWOK node is of the type that an overlay makes the cheapest', async (t) => {
  assert.equal(await launched(t, 'kwok', kwokClass, kwokTypes), 'm-8x-amd64-linux')
})

test('as Karpenter does it, overlays order the choice of a claim and not what is made of it', async (t) => {
  const settings = { ...withOverlays, compatibility: 'karpenter' } as const
  assert.equal(await launched(t, 'exoscale', exoscaleClass, exoscaleTypes, settings), 'standard.small')
})
