/** What users switch on in annotations changes no decision of others (wanted.md): a day of one cluster, decision by decision. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  autoscalingKinds,
  karpenterKinds,
  kinds,
  type KubeObject,
  labels,
  type NodeClaim,
  type NodePool,
  type ResourceType,
} from '@tenon/api'
import { defaultSettings, type Settings } from '@tenon/operator'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { aDeployment, aKwokPool, deploymentKind, World } from '../world.ts'

const minutes = 60_000

const ofPool = {
  'tenon.sh/zone-balance': '50%',
  'tenon.sh/disrupt-zones': 'sequential',
  'tenon.sh/expiration': 'soft',
  'tenon.sh/expiration-deadline': '1h',
  'tenon.sh/expiration-jitter': '50%',
  'tenon.sh/time-zone': 'Asia/Tokyo',
  'tenon.sh/price-per-node': '5',
  'tenon.sh/drift-without-surge': 'true',
  'tenon.sh/repair': 'off',
  'tenon.sh/repair-budget': '0',
}

interface Options {
  readonly settings?: Partial<Settings>
  /** Whether everything is annotated, and a quota allows no node. */
  readonly asks?: boolean
  /** Whether there are as many objects as with `asks`. */
  readonly isLikeAsking?: boolean
}

const quota = {
  apiVersion: 'autoscaling.x-k8s.io/v1beta1',
  kind: 'CapacityQuota',
  metadata: { name: 'none' },
  spec: { limits: { resources: { nodes: '0' } } },
}
const configMapKind: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
}

/** What was launched, chosen for disruption, and deleted, in this order; each with the CPUs of its node. */
async function decisionsOf(
  t: TestContext,
  { settings = {}, asks = false, isLikeAsking = false }: Options,
): Promise<string> {
  const world = await World.start({ seed: 1, provider: 'kwok', servesQuotas: asks || isLikeAsking, settings })
  t.after(() => world.stop())
  const decisions: string[] = []
  const cpusOf = ({ metadata }: NodeClaim) => /\d+/.exec(metadata.labels?.[labels.instanceType] ?? '')?.[0]
  const reasonOf = (claim: NodeClaim) =>
    claim.status?.conditions?.find(({ type, status }) => type === 'DisruptionReason' && status === 'True')
      ?.reason
  world.cluster.server.local.subscribe(karpenterKinds.nodeClaim, {
    updated: (now, before) => {
      if (cpusOf(before) === undefined && cpusOf(now) !== undefined) decisions.push(`launch ${cpusOf(now)}`)
      if (reasonOf(now) !== undefined && reasonOf(before) === undefined)
        decisions.push(`${reasonOf(now)} ${cpusOf(now)}`)
    },
    deleted: (claim) => decisions.push(`end ${cpusOf(claim)}`),
  })
  const nodeClass = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
  world.create(kwokNodeClassKind, { ...nodeClass, metadata: { name: 'default' } })
  const pool = aKwokPool('default')
  const budgets = [{ nodes: '50%' }, { nodes: '0', schedule: '20 9 * * *', duration: '20m' }]
  world.create<NodePool>(karpenterKinds.nodePool, {
    ...pool,
    metadata: { name: 'default', ...(asks && { annotations: ofPool }) },
    spec: {
      ...pool.spec,
      template: {
        spec: {
          ...pool.spec.template.spec,
          expireAfter: '45m',
          requirements: [
            ...(pool.spec.template.spec.requirements ?? []),
            { key: 'karpenter.kwok.sh/instance-cpu', operator: 'In', values: ['2', '4', '8'] },
            // With several, new nodes go to the emptiest zone, also without any annotation (wanted.md 6).
            { key: labels.zone, operator: 'In', values: ['test-zone-a'] },
          ],
        },
      },
      disruption: {
        consolidationPolicy: 'WhenEmptyOrUnderutilized',
        consolidateAfter: '30s',
        budgets,
      },
    },
  })
  // Another object in its place, as UIDs decide between equals.
  if (asks) world.create(autoscalingKinds.capacityQuota, quota)
  else if (isLikeAsking)
    world.create(configMapKind, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'none', namespace: 'default' },
    })
  for (const [name, replicas, cpu] of [
    ['web', 6, '1500m'],
    ['worker', 3, '3'],
    ['solo', 1, '700m'],
  ] as const) {
    const deployment = aDeployment(name, replicas, { cpu, memory: '512Mi' })
    const annotated = {
      ...deployment,
      metadata: { ...deployment.metadata, annotations: { 'tenon.sh/surge-on-drain': 'true' } },
    }
    world.create<KubeObject>(deploymentKind, asks ? annotated : deployment)
  }
  if (asks)
    world.cluster.server.local.patch(kinds.namespace, undefined, 'default', {
      metadata: { annotations: { 'tenon.sh/disruption-windows': 'Mon 01:00-01:05 Asia/Tokyo' } },
    })
  await world.startOperator()
  await world.clock.advance(3 * minutes)
  world.scale('web', 2)
  await world.clock.advance(8 * minutes)
  const template = { metadata: { labels: { release: '2' } } }
  world.cluster.server.local.patch(karpenterKinds.nodePool, undefined, 'default', { spec: { template } })
  await world.clock.advance(20 * minutes)
  world.scale('web', 5)
  const [first] = world.nodes()
  if (asks && first !== undefined)
    world.cluster.server.local.patch(kinds.node, undefined, first.metadata.name, {
      metadata: { annotations: { 'tenon.sh/do-not-repair': 'true' } },
    })
  await world.clock.advance(60 * minutes)
  return decisions.join(', ')
}

/** What was decided at de3f46436, the last commit without any of it. The figures are the CPUs of the node. */
const beforeAdditions = {
  karpenter: [
    'launch 8, launch 8, launch 4, launch 4, Underutilized 4, end 4, Underutilized 8,',
    'launch 4, end 8, Drifted 4, launch 4, end 4, Drifted 8, launch 8, end 8, Drifted 4,',
    'launch 4, end 4, launch 8, Underutilized 4, end 4, launch 8, end 8, launch 4, end 4,',
    'launch 8, end 8',
  ].join(' '),
  none: [
    'launch 8, launch 8, launch 4, launch 4, Underutilized 8, Underutilized 4, launch 2,',
    'end 8, end 4, Drifted 8, launch 8, Drifted 2, launch 2, end 8, Drifted 4, launch 4,',
    'end 2, end 4, launch 8, Underutilized 2, end 2, launch 8, end 8, launch 4, end 4,',
    'launch 8, end 8',
  ].join(' '),
}

test('with --compatibility=karpenter no annotation and no quota changes a decision', async (t) => {
  const settings: Partial<Settings> = {
    compatibility: 'karpenter',
    featureGates: { ...defaultSettings.featureGates, nodeRepair: true },
  }
  const like = await decisionsOf(t, { settings, isLikeAsking: true })
  assert.equal(await decisionsOf(t, { settings, asks: true }), like)
})

for (const compatibility of ['karpenter', 'none'] as const)
  test(`with none of it, decisions are as before, with compatibility ${compatibility}`, async (t) => {
    assert.equal(await decisionsOf(t, { settings: { compatibility } }), beforeAdditions[compatibility])
  })
