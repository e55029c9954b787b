/** Surges, quotas and repair on a real control plane (quotas.md 1, wanted.md 2, 3), with an observer that watches pods and nodes. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import {
  autoscalingKinds,
  capacityQuotaCrd,
  isConditionTrue,
  karpenterKinds,
  kinds,
  type KubeObject,
  type NodeClaim,
  type NodePool,
  type Pod,
  type PodSpec,
  parseResources,
} from '@tenon/api'
import { createKubeClient, isKubeError, loadKubeConfig } from '@tenon/kube'
import { defaultSettings } from '@tenon/operator'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { SystemClock } from '@tenon/runtime'
import { ClusterAutoscalerProcess } from '../src/cluster-autoscaler-process.ts'
import { ExoscaleMirror } from '../src/exoscale-mirror.ts'
import { applyCrds } from '../src/scheduling-proof/autoscaler.ts'
import { deployment, proofKinds } from '../src/scheduling-proof/objects.ts'
import { aDeployment, Cluster, sharedControlPlane, type TestObject, until } from './cluster.ts'
import { DrainStand } from './drain-stand.ts'

const seconds = 1000
const namespace = 'default'
/** No kubelet writes it, so that nobody but the test changes it. */
const failing = 'DiskFailing'

const isPodReady = ({ status }: Pod) =>
  (status?.conditions ?? []).some((each) => each.type === 'Ready' && each.status === 'True')
const inDefault = (name: string) => ({ namespace, name })
const ignoringGone = (error: unknown) => {
  if (!isKubeError(error, 'notFound')) throw error
}

function aPool(template: Partial<NodePool['spec']['template']['spec']> = {}): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'wanted' },
    spec: {
      disruption: {
        consolidationPolicy: 'WhenEmptyOrUnderutilized',
        consolidateAfter: '0s',
        budgets: [{ nodes: '100%' }],
      },
      template: {
        spec: {
          expireAfter: 'Never',
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'wanted' },
          requirements: [
            { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
          ],
          ...template,
        },
      },
    },
  }
}

function aQuota(resources: Readonly<Record<string, string>>) {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityQuota',
    metadata: { name: 'ceiling' },
    spec: { limits: { resources } },
  }
}

describe('the controller', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let stand: DrainStand

  const claims = (): readonly NodeClaim[] => stand.operator.caches.nodeClaims.list()
  const names = () => claims().map(({ metadata }) => metadata.name)
  const running = (app: string) =>
    stand.pods.list().filter((pod) => pod.metadata.labels?.['app'] === app && isPodReady(pod))
  const reached = async (what: string, isDone: () => boolean, withinSeconds = 180) => {
    const isReached = await stand.wait(isDone, stand.clock.now() + withinSeconds * seconds)
    assert.ok(isReached, `not within ${withinSeconds} s: ${what}`)
  }
  const create = async (
    name: string,
    replicas: number,
    cpu: string,
    {
      annotations = {},
      spec = {},
    }: { readonly annotations?: Readonly<Record<string, string>>; readonly spec?: Partial<PodSpec> } = {},
  ) => {
    const { type, object } = deployment(replicas, {
      namespace,
      name,
      requests: { cpu, memory: '64Mi' },
      spec,
    })
    await stand.client.create(type, {
      ...object,
      metadata: { ...object.metadata, annotations },
    })
  }
  const remove = async (...apps: readonly string[]) => {
    for (const name of apps)
      await stand.client
        .delete(proofKinds.deployment, inDefault(name), { propagationPolicy: 'Background' })
        .catch(ignoringGone)
    await reached('the pods are gone', () => apps.every((app) => running(app).length === 0))
  }
  /** Waits until all nodes there are now are gone, and everything that has come is initialized. */
  const replaced = async (what: string, start: () => Promise<unknown>) => {
    const old = new Set(names())
    await start()
    await reached(
      `nodes are replaced: ${what}`,
      () => claims().length > 0 && claims().every((claim) => !old.has(claim.metadata.name) && isUp(claim)),
    )
    assert.deepEqual(stand.complaints, [], what)
  }
  const isUp = (claim: NodeClaim) =>
    claim.metadata.deletionTimestamp === undefined && isConditionTrue(claim, 'Initialized')

  before(async () => {
    controlPlane = await sharedControlPlane()
    stand = await DrainStand.start(controlPlane.kubeconfigPath, undefined, {
      settings: {
        surgeOnDrain: 'annotated',
        batchIdleMs: 300,
        validationDelayMs: 2000,
        disruptionPollMs: 1000,
        driftPeriodMs: 5000,
        featureGates: { ...defaultSettings.featureGates, nodeRepair: true },
      },
      repairPolicies: [{ conditionType: failing, conditionStatus: 'True', tolerationMs: 3000 }],
      crds: [capacityQuotaCrd],
    })
    await stand.client.create(kwokNodeClassKind, {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: 'wanted' },
      spec: {},
    })
    await stand.client.create(karpenterKinds.nodePool, aPool())
  })

  after(async () => {
    await stand.client.delete(karpenterKinds.nodePool, { name: 'wanted' }).catch(ignoringGone)
    await stand.clear()
    await stand.client.delete(kwokNodeClassKind, { name: 'wanted' }).catch(ignoringGone)
    await stand.stop()
    await controlPlane.stop()
  })

  test('WNT-19 a pod behind minAvailable 1 is ready at every moment of consolidation, drift and expiry', async () => {
    await stand.client.create(kinds.podDisruptionBudget, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'web', namespace },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
    })
    const annotations = { 'tenon.sh/surge-on-drain': 'true' }
    await Promise.all([create('web', 1, '500m', { annotations }), create('beside', 1, '12', { annotations })])
    await reached('both pods run', () => running('web').length === 1 && running('beside').length === 1)
    await reached('nodes are up', () => claims().every(isUp))
    stand.follow([{ name: 'web', matchLabels: { app: 'web' }, desiredHealthy: 1 }], Number.POSITIVE_INFINITY)
    const pool = (spec: object) => stand.client.patch(karpenterKinds.nodePool, { name: 'wanted' }, { spec })
    await replaced('consolidation', () => remove('beside'))
    const template = (of: object) => ({ template: { metadata: { labels: { release: '2' } }, ...of } })
    await replaced('drift', () => pool(template({ spec: { expireAfter: '45s' } })))
    await replaced('expiry', async () => await pool({ template: { spec: { expireAfter: 'Never' } } }))
    assert.ok(running('web').length >= 1)
    await remove('web')
    await stand.client.delete(kinds.podDisruptionBudget, inDefault('web'))
    stand.follow([], Number.POSITIVE_INFINITY)
    await reached('no node is left', () => claims().length === 0)
  })

  test('WNT-1 WNT-10 nodes keep to a quota at every moment, pods name it, and more come when it is raised', async () => {
    await stand.client.create(autoscalingKinds.capacityQuota, aQuota({ cpu: '8', nodes: '2' }))
    const { nodes, capacityQuotas } = stand.operator.caches
    await reached('the quota is in use', () =>
      (capacityQuotas?.list() ?? []).some((quota) => isConditionTrue(quota, 'Reconciled')),
    )
    const used = (): readonly [cpu: number, nodes: number] => {
      const capacities = nodes.list().map(({ status }) => parseResources(status?.capacity)['cpu'] ?? 0)
      return [capacities.reduce((sum, each) => sum + each, 0) / 1000, capacities.length]
    }
    const exceeded: string[] = []
    nodes.onChange(() => {
      const [cpu, count] = used()
      const { resources } = capacityQuotas?.get({ name: 'ceiling' })?.spec.limits ?? {}
      if (cpu > Number(resources?.['cpu'] ?? Infinity) || count > Number(resources?.['nodes'] ?? Infinity))
        exceeded.push(`${cpu} CPUs on ${count} nodes`)
    })
    await create('crowd', 12, '1')
    const events = async (): Promise<readonly string[]> => {
      const all: readonly (KubeObject & { readonly message?: string })[] = await stand.client.list(
        kinds.event,
      )
      return all.map(({ message = '' }) => message)
    }
    await until('a pod names the quota', 60, async () =>
      (await events()).some((message) => /CapacityQuota ceiling has .* of (cpu|nodes) left/.test(message)),
    )
    await reached('what fits runs', () => running('crowd').length >= 4)
    assert.ok(running('crowd').length <= 8)
    await stand.client.patch(
      autoscalingKinds.capacityQuota,
      { name: 'ceiling' },
      { spec: { limits: { resources: { cpu: '40', nodes: '20' } } } },
    )
    await reached('all pods run', () => running('crowd').length === 12)
    assert.deepEqual(exceeded, [])
    await remove('crowd')
    await stand.client.delete(autoscalingKinds.capacityQuota, { name: 'ceiling' })
    await reached('no node is left', () => claims().length === 0)
  })

  test('WNT-11 WNT-12 one of three nodes is repaired: its successor is initialized first, the others stay', async () => {
    const apart = {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          { labelSelector: { matchLabels: { app: 'spread' } }, topologyKey: 'kubernetes.io/hostname' },
        ],
      },
    }
    await create('spread', 3, '500m', { spec: { affinity: apart } })
    await reached('three nodes are up', () => claims().length === 3 && claims().every(isUp))
    await reached('three pods run', () => running('spread').length === 3)
    const [sick, ...others] = claims()
    const { nodeName = '', name = '' } = { ...sick?.status, ...sick?.metadata }
    const early: string[] = []
    stand.operator.caches.nodeClaims.onChange(({ object }) => {
      const isLeaving = object.metadata.name === name && object.metadata.deletionTimestamp !== undefined
      if (
        isLeaving &&
        !claims().some((claim) => claim.metadata.name !== name && isSuccessor(claim) && isUp(claim))
      )
        early.push(object.metadata.name)
    })
    const isSuccessor = (claim: NodeClaim) =>
      others.every((other) => other.metadata.uid !== claim.metadata.uid)
    const time = new Date(stand.clock.now()).toISOString()
    const condition = { type: failing, status: 'True', reason: 'Test', message: '', lastTransitionTime: time }
    const node = await stand.client.get(kinds.node, { name: nodeName })
    const conditions = [...(node?.status?.conditions ?? []), condition]
    await stand.client.patch(
      kinds.node,
      { name: nodeName },
      { status: { conditions } },
      { subresource: 'status' },
    )
    await reached('the node is gone', () => !names().includes(name))
    await reached('three nodes are up again', () => claims().length === 3 && claims().every(isUp))
    assert.deepEqual(early, [])
    for (const other of others) assert.ok(names().includes(other.metadata.name), 'the other nodes stay')
    await remove('spread')
  })
})

const rbac = 'rbac.authorization.k8s.io'
/** As the chart grants them; the stock manifest has none. */
const rightsOfQuotas: readonly TestObject[] = [
  {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRole',
    metadata: { name: 'cluster-autoscaler-quotas' },
    rules: [
      {
        apiGroups: ['autoscaling.x-k8s.io'],
        resources: ['capacityquotas'],
        verbs: ['watch', 'list', 'get'],
      },
      { apiGroups: ['autoscaling.x-k8s.io'], resources: ['capacityquotas/status'], verbs: ['update'] },
    ],
  } as TestObject,
  {
    apiVersion: `${rbac}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name: 'cluster-autoscaler-quotas' },
    roleRef: { apiGroup: rbac, kind: 'ClusterRole', name: 'cluster-autoscaler-quotas' },
    subjects: [{ kind: 'ServiceAccount', name: 'cluster-autoscaler', namespace: 'kube-system' }],
  } as TestObject,
]

describe('the Cluster Autoscaler mode', () => {
  test('WNT-8 scale-up stops at a quota, and the status ConfigMap says so', async () => {
    const clock = new SystemClock()
    const controlPlane = await sharedControlPlane()
    const cluster = new Cluster(controlPlane.kubeconfigPath)
    const config = loadKubeConfig({ env: {}, kubeconfig: controlPlane.kubeconfigPath, clock })
    const admin = createKubeClient({ transport: config.transport, clock, userAgent: 'administrator' })
    const folder = mkdtempSync(join(tmpdir(), 'tenon-wanted-'))
    for (const { metadata } of await admin.list(kinds.node)) await admin.delete(kinds.node, metadata)
    await applyCrds(admin, clock, [capacityQuotaCrd])
    const pool = {
      id: 'c0030000-0000-4000-8000-000000000003',
      name: 'limited',
      type: 'standard.medium',
      size: 1,
      joins: true as const,
      prefix: 'limited',
      labels: { pool: 'limited' },
    }
    const operations = [
      'get-instance',
      'get-instance-pool',
      'get-operation',
      'get-quota',
      'list-sks-clusters',
      'scale-sks-nodepool',
    ]
    const mirror = await ExoscaleMirror.start({
      admin,
      seed: { nodepools: [pool], instancePools: [] },
      operations,
    })
    const autoscaler = new ClusterAutoscalerProcess({
      controlPlane,
      folder,
      args: [
        '--cloud-provider=exoscale',
        '--scan-interval=2s',
        '--scale-down-enabled=false',
        '--capacity-quotas-enabled',
      ],
      environment: mirror.environment,
    })
    try {
      for (const object of rightsOfQuotas) await cluster.create(object)
      await admin.create(autoscalingKinds.capacityQuota, aQuota({ nodes: '3' }))
      await until('the first node is there', 60, async () => (await cluster.list('v1', 'Node')).length === 1)
      autoscaler.start()
      await cluster.create(
        aDeployment({
          name: 'many',
          replicas: 40,
          cpu: '500m',
          memory: '64Mi',
          nodeSelector: { pool: 'limited' },
        }),
      )
      const most = { nodes: 0 }
      const look = async () => {
        most.nodes = Math.max(most.nodes, mirror.members().length, (await cluster.list('v1', 'Node')).length)
        return most.nodes
      }
      await until('the quota is used up', 180, async () => (await look()) >= 3)
      await until('the events name the quota', 120, async () => {
        await look()
        const events = (await cluster.list('v1', 'Event')) as readonly { readonly message?: string }[]
        return events.some(({ message = '' }) =>
          message.includes('exceeded quota: "ceiling", resources: nodes'),
        )
      })
      await until('the status ConfigMap lists it', 60, async () => {
        await look()
        const map = await cluster.get('v1', 'ConfigMap', 'cluster-autoscaler-status', 'kube-system')
        const { status = '' } =
          (map as { readonly data?: Readonly<Record<string, string>> } | undefined)?.data ?? {}
        return status.includes('ceiling')
      })
      assert.equal(await look(), 3)
      autoscaler.assertRunning()
    } finally {
      await autoscaler.end('SIGTERM')
      await cluster.delete('apps/v1', 'Deployment', 'many', namespace)
      await admin.delete(autoscalingKinds.capacityQuota, { name: 'ceiling' }).catch(ignoringGone)
      for (const { apiVersion = '', kind = '', metadata } of rightsOfQuotas)
        await cluster.delete(apiVersion, kind, metadata?.name ?? '')
      await mirror.stop()
      config.close()
      rmSync(folder, { recursive: true })
      await controlPlane.stop()
    }
  })
})
