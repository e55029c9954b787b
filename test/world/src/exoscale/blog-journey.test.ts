/**
 * The journey of Exoscale's announcement of Karpenter for SKS: pending system pods on an empty cluster, a
 * node class and a NodePool, nodes, anti-affinity, the cost-effective type, and smaller again.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { conditionOf, type KubeObject, type Pod, type ResourceType } from '@tenon/api'
import { deploymentKind, World } from '../world.ts'
import { applyYaml } from '../testing/apply-yaml.test-support.ts'
import { blogNodeClass, blogNodePool } from './blog-manifests.test-support.ts'

const minute = 60_000
const daemonSetKind: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  namespaced: true,
}
const securityGroup = '8a4c2d1e-7f60-4b53-8e2d-9c0b1a2f3e4d'
const prices: Readonly<Record<string, number>> = {
  'standard.medium': 0.04666,
  'standard.large': 0.09333,
  'standard.extra-large': 0.18667,
}

interface SystemPod {
  readonly name: string
  readonly replicas?: number
  readonly requests: Readonly<Record<string, string>>
  /** No two of them on one node. */
  readonly isSpread?: boolean
}

/** What SKS puts into `kube-system` of a new cluster. */
const systemDeployments: readonly SystemPod[] = [
  { name: 'calico-kube-controllers', replicas: 1, requests: { cpu: '50m', memory: '64Mi' } },
  { name: 'coredns', replicas: 2, requests: { cpu: '100m', memory: '70Mi' }, isSpread: true },
  { name: 'konnectivity-agent', replicas: 2, requests: { cpu: '50m', memory: '64Mi' }, isSpread: true },
  { name: 'metrics-server', replicas: 1, requests: { cpu: '100m', memory: '200Mi' } },
]
const systemDaemons: readonly SystemPod[] = [
  { name: 'calico-node', requests: { cpu: '250m', memory: '128Mi' } },
  { name: 'kube-proxy', requests: { cpu: '50m', memory: '64Mi' } },
]

function systemObject(kind: 'Deployment' | 'DaemonSet', pod: SystemPod): KubeObject {
  const labels = { 'k8s-app': pod.name }
  const object = {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: pod.name, namespace: 'kube-system' },
    spec: {
      ...(pod.replicas !== undefined && { replicas: pod.replicas }),
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          tolerations: [{ operator: 'Exists', ...(kind === 'Deployment' && { key: 'CriticalAddonsOnly' }) }],
          ...(pod.isSpread && {
            affinity: {
              podAntiAffinity: {
                requiredDuringSchedulingIgnoredDuringExecution: [
                  { topologyKey: 'kubernetes.io/hostname', labelSelector: { matchLabels: labels } },
                ],
              },
            },
          }),
          containers: [{ name: pod.name, image: pod.name, resources: { requests: pod.requests } }],
        },
      },
    },
  }
  return object
}

function aWorkload(replicas: number): KubeObject {
  const labels = { app: 'shop' }
  const object = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'shop', namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          containers: [{ name: 'shop', image: 'shop', resources: { requests: { cpu: '1', memory: '1Gi' } } }],
        },
      },
    },
  }
  return object
}

const isSystem = ({ metadata }: Pod): boolean => metadata.namespace === 'kube-system'

/** Hourly price of the cheapest set of instances that holds `pods` such workload pods beside the daemons. */
function cheapestFor(pods: number): number {
  // Pods of 1 CPU and 1 GiB that fit beside the daemons and reservations of each type.
  const room: Readonly<Record<string, number>> = {
    'standard.medium': 1,
    'standard.large': 3,
    'standard.extra-large': 3,
  }
  const best = [0]
  for (let held = 1; held <= pods; held++) {
    const choices = Object.entries(room).map(
      ([type, fits]) => (best[Math.max(0, held - fits)] ?? 0) + (prices[type] ?? 0),
    )
    best.push(Math.min(...choices))
  }
  return best[pods] ?? 0
}

test("EXO-141 the announcement's journey: pending system pods, a class and a pool, two nodes, a workload, and back", async () => {
  const world = await World.start({ seed: 11, provider: 'exoscale' })
  const { clock, cluster } = world
  cluster.cloud.add({ securityGroups: [{ id: securityGroup, name: 'sks-nodes' }] })
  for (const pod of systemDeployments) world.create(deploymentKind, systemObject('Deployment', pod))
  for (const pod of systemDaemons) world.create(daemonSetKind, systemObject('DaemonSet', pod))
  const running = await world.startOperator()
  const nodeOf = (name: string) =>
    world
      .pods()
      .filter(({ metadata }) => metadata.labels?.['k8s-app'] === name)
      .map(({ spec }) => spec?.nodeName)
  const runs = (count: number) =>
    world.pods().filter(({ status }) => status?.phase === 'Running').length >= count &&
    world.pods().every(({ status }) => status?.phase === 'Running')
  const types = () =>
    cluster.cloud
      .instances()
      .map(({ type }) => type)
      .toSorted()

  await clock.advance(5 * minute)
  assert.equal(world.pods().length, 6, 'the six pods of an empty cluster')
  assert.ok(world.pods().every((pod) => isSystem(pod) && pod.status?.phase === 'Pending'))
  assert.equal(cluster.cloud.instances().length, 0, 'nothing says yet what to launch')

  for (const manifest of [blogNodeClass.replace('<setme>', securityGroup), blogNodePool])
    assert.deepEqual(await applyYaml(world, manifest), { status: 201, message: '' })
  assert.ok(await clock.advanceUntil(() => runs(10), 5 * minute), 'six pods and two daemons on each node run')
  assert.deepEqual(types(), ['standard.medium', 'standard.medium'], 'the cheapest type, twice')
  for (const name of ['coredns', 'konnectivity-agent'])
    assert.equal(new Set(nodeOf(name)).size, 2, `${name} runs on two nodes`)
  for (const { metadata, status } of world.nodes()) {
    assert.equal(metadata.labels?.['nodepool'], 'standard')
    assert.equal(metadata.labels?.['node.kubernetes.io/instance-type'], 'standard.medium')
    assert.ok(status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True'))
  }
  for (const claim of world.claims())
    assert.equal(
      conditionOf(claim, 'Initialized')?.status,
      'True',
      'unregistered is among its startup taints',
    )
  const first = new Set(world.claims().map(({ metadata }) => metadata.name))

  const before = cluster.cloud.snapshot().pricePerHour
  world.create(deploymentKind, aWorkload(12))
  assert.ok(await clock.advanceUntil(() => runs(22), 5 * minute), 'the workload runs')
  const paid = cluster.cloud.snapshot().pricePerHour - before
  // The two nodes that were there hold one pod each.
  assert.ok(paid <= cheapestFor(10) * 1.001, `${paid} EUR per hour, at best ${cheapestFor(10)}`)

  world.scale('shop', 0)
  const isSmall = () => types().length === 2 && world.nodes().length === 2 && world.claims().length === 2
  assert.ok(await clock.advanceUntil(() => isSmall() && runs(10), 90 * minute), 'back to two nodes')
  assert.deepEqual(types(), ['standard.medium', 'standard.medium'])

  // Nodes of this pool live for half an hour; each is replaced, and the system pods keep running.
  const isRenewed = () => world.claims().every(({ metadata }) => !first.has(metadata.name)) && isSmall()
  assert.ok(
    await clock.advanceUntil(() => isRenewed() && runs(10), 90 * minute),
    'expired nodes are replaced',
  )
  for (const name of ['coredns', 'konnectivity-agent']) assert.equal(new Set(nodeOf(name)).size, 2)
  await world.bury(running)
  await world.stop()
})
