import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type KubeObject, labels, type Node, type Pod, type PodDisruptionBudget } from '@tenon/api'
import type { Snapshot } from '../snapshot/snapshot.ts'
import {
  aClaimedNode,
  aNode,
  aPending,
  aPool,
  aRunning,
  aSnapshot,
  aType,
} from '../testing/clusters.test-support.ts'
import { withPriceList } from './prices.ts'
import { type ClusterReport, clusterReport, type ReportFacts } from './report.ts'

const small = aType('small', 2)
const large = aType('large', 8)
const pool = aPool('default')
const requests = { cpu: '900m', memory: '1Gi' }
const unmeasured: ReportFacts = { usage: undefined, serverVersion: undefined }

/** As Deployments label their pods. */
const deployed = (pod: Pod): Pod => ({
  ...pod,
  metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, 'pod-template-hash': '7d9f' } },
})

const web = (at: number, more: Partial<Pod['metadata']> = {}): Pod => {
  const pod = aRunning(aPending(`web-${at}`, requests, {}, 'web'), `node-${at}`)
  return deployed({ ...pod, metadata: { ...pod.metadata, ...more } })
}

/** Four large nodes, each with one of the pods. */
function fleet(pods: readonly Pod[], more: readonly KubeObject[] = []): Snapshot {
  const nodes = [0, 1, 2, 3].flatMap((at) => aClaimedNode(`node-${at}`, pool, large))
  return aSnapshot([pool, ...nodes, ...pods, ...more], [small, large])
}

async function found(snapshot: Snapshot, facts: ReportFacts = unmeasured): Promise<ClusterReport> {
  return await clusterReport(snapshot, facts)
}

const rounded = (price: number | undefined) => price && Math.round(price * 1e6) / 1e6

test('ADO-1 obstacles are ranked by what Tenon could save without them, and name what to change', async () => {
  const pinned = { annotations: { 'karpenter.sh/do-not-disrupt': 'true' } }
  const budget: PodDisruptionBudget = {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'shut', namespace: 'default' },
    spec: { selector: { matchLabels: { app: 'web' } }, maxUnavailable: 0 },
  }
  const other = { labels: { app: 'other' } }
  const { obstacles, plans, now } = await found(
    fleet([web(0), web(1), web(2, other), web(3, { ...pinned, ...other })], [budget]),
  )
  assert.equal(now.price.pricePerHour, 1.6)
  // One node holds the pod of the fourth; the nodes of the budget and of the annotation stay.
  assert.equal(rounded(plans?.byMoves.price.pricePerHour), 1.2)
  assert.equal(rounded(plans?.fromNothing.price.pricePerHour), 0.2)
  assert.deepEqual(
    obstacles.map(({ kind, nodes, items, pricePerHour }) => [
      kind,
      nodes,
      items[0]?.name,
      rounded(pricePerHour),
    ]),
    [
      ['budget', 2, 'PodDisruptionBudget default/shut', 0.8],
      ['doNotDisrupt', 1, 'Deployment default/web', 0.4],
    ],
  )
})

test('ADO-1 requests far above the usage, daemons, and pods without requests cost what is paid for them', async () => {
  const daemon = aRunning(aPending('agent', { cpu: '2', memory: '4Gi' }), 'node-0')
  const agent: Pod = {
    ...daemon,
    metadata: {
      ...daemon.metadata,
      ownerReferences: [
        { apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', uid: 'd', controller: true },
      ],
    },
  }
  const bare = aRunning(aPending('bare', {}), 'node-1')
  const { obstacles } = await found(fleet([web(0), web(1), web(2), web(3), agent, bare]), {
    ...unmeasured,
    usage: new Map([['default/web-2', { cpu: 90, memory: 1024 ** 2 }]]),
  })
  const by = new Map(obstacles.map((each) => [each.kind, each]))
  assert.equal(by.get('daemons')?.items[0]?.name, 'DaemonSet default/agent')
  // A quarter of CPU and an eighth of memory, of 0.4 an hour.
  assert.equal(rounded(by.get('daemons')?.pricePerHour), 0.075)
  assert.deepEqual([by.get('noRequests')?.pods, by.get('noRequests')?.pricePerHour], [1, undefined])
  assert.equal(by.get('unusedRequests')?.pods, 1)
  assert.ok((by.get('unusedRequests')?.pricePerHour ?? 0) > 0.02)
  assert.equal(obstacles.at(-1)?.kind, 'noRequests')
})

test('ADO-3 with prices for half the types, the others are counted, stay in each plan, and are in no sum', async () => {
  const mixed = aSnapshot(
    [pool, ...aClaimedNode('node-0', pool, large), ...aClaimedNode('node-1', pool, small), web(0), web(1)],
    [small, large],
  )
  const priced = withPriceList(mixed, { currency: 'CHF', pricesPerHour: new Map([['large', 3]]) })
  const { cost, currency, now, plans } = await found(priced)
  assert.deepEqual([currency, now.price], ['CHF', { pricePerHour: 3, unpriced: 1 }])
  assert.deepEqual(
    cost.type.groups.map(({ name, unpriced }) => [name, unpriced]),
    [
      ['large', 0],
      ['small', 1],
    ],
  )
  // The pod of the large node has room on the small one, which stays.
  assert.deepEqual(plans?.fromNothing.price, { pricePerHour: 0, unpriced: 1 })
  assert.equal(plans?.fromNothing.nodes, 1)
  const none = await found(withPriceList(mixed, { pricesPerHour: new Map() }))
  assert.deepEqual([none.plans, none.currency, none.now.price.unpriced], [undefined, undefined, 2])
})

test('ADO-2 a cluster without NodePools is planned by the taints and labels of its nodes', async () => {
  const of = (
    name: string,
    type: string,
    more: Readonly<Record<string, string>>,
    taints: object[] = [],
  ): Node => aNode(name, '8', { [labels.instanceType]: type, ...more }, taints as never)
  const taint = { key: 'gpu', value: 'a', effect: 'NoSchedule' as const }
  const objects = [
    ...[0, 1, 2].map((at) => of(`node-${at}`, 'large', { 'cloud.test/nodegroup': 'web', disk: 'ssd' })),
    of('node-3', 'large', { 'cloud.test/nodegroup': 'gpu' }, [taint]),
    ...[0, 1, 2].map((at) =>
      aRunning(aPending(`web-${at}`, requests, { nodeSelector: { disk: 'ssd' } }, 'web'), `node-${at}`),
    ),
    aRunning(
      aPending('gpu', requests, { tolerations: [{ key: 'gpu', operator: 'Exists' }], nodeSelector: {} }),
      'node-3',
    ),
  ]
  const { cost, plans } = await found(aSnapshot(objects, [small, large]))
  assert.deepEqual(
    cost.nodepool.groups.map(({ name, instances }) => [name, instances]),
    [
      ['web', 3],
      ['gpu', 1],
    ],
  )
  assert.equal(rounded(plans?.fromNothing.price.pricePerHour), 0.2)
  assert.deepEqual(plans?.fromNothing.unplaceable, [])
})

test('ADO-1 risks name pods without a node, broken spreads, limits, old nodes and old kubelets', async () => {
  const limited = aPool('default', { limits: { cpu: '32' } })
  const [old, ...others] = fleet([web(0), web(1)]).objects.filter(({ kind }) => kind === 'Node') as Node[]
  assert.ok(old)
  const spread = {
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: labels.zone,
        whenUnsatisfiable: 'DoNotSchedule' as const,
        minDomains: 3,
        labelSelector: { matchLabels: { app: 'db' } },
      },
    ],
  }
  const aged: Node = {
    ...old,
    metadata: { ...old.metadata, creationTimestamp: '2026-10-01T00:00:00Z' },
    status: { ...old.status, nodeInfo: { kubeletVersion: 'v1.30.1' } },
  }
  const { risks } = await found(
    aSnapshot(
      [
        limited,
        aged,
        ...others,
        aPending('huge', { cpu: '640', memory: '1Gi' }),
        deployed(aRunning(aPending('db-0', requests, spread, 'db'), 'node-0')),
      ],
      [small, large],
    ),
    { ...unmeasured, serverVersion: 'v1.36.0' },
  )
  const of = (kind: string) => risks.find((each) => each.kind === kind)?.items
  assert.deepEqual(of('noType'), [{ name: 'Pod default/huge', detail: '1 pod' }])
  assert.deepEqual(of('spread'), [
    { name: 'Deployment default/db', detail: `1 of 3 domains of ${labels.zone}` },
  ])
  assert.deepEqual(of('limit'), [{ name: 'NodePool default', detail: '100 % of cpu' }])
  assert.deepEqual(of('oldNode'), [{ name: 'Node node-0', detail: '56 days' }])
  assert.deepEqual(of('versionSkew'), [{ name: 'Node node-0', detail: 'kubelet v1.30.1' }])
})
