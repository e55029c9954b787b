/** The simulated Cluster API as the command line starts it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds as coreKinds } from '@tenon/api'
import { createCredentials, startDevCluster } from '@tenon/devcluster'
import { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { parseAllDocuments } from 'yaml'
import { defaultGroup } from '@tenon/provider-cluster-api'
import { simulatedKinds } from './kinds.ts'
import { simulator } from './provider-simulator.ts'

async function started(isHurried: boolean, hasNodeGroups = false) {
  const clock = new VirtualClock()
  const cluster = startDevCluster({
    clock,
    random: new SeededRandom('up'),
    logger: silentLogger,
    credentials: await createCredentials(clock.now()),
    simulator: simulator.cloud({ isHurried, hasNodeGroups, bootDelayMs: 2_000 }),
  })
  return { clock, cluster, hub: cluster.server.localAs('kubectl') }
}

const kinds = simulatedKinds(defaultGroup, 'v1beta2')

test('the guided demonstration finds three MachineDeployments of different sizes and prices without replicas', async (t) => {
  const { clock, cluster, hub } = await started(true)
  t.after(() => cluster.stop())
  await clock.advance(5_000)
  const found = hub.list(kinds.deployment).map(({ metadata, spec }) => ({
    name: metadata.name,
    replicas: spec?.replicas,
    price: metadata.annotations?.['cluster.x-k8s.io/machine-current-price'],
    most: metadata.annotations?.['cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size'],
    cpu: hub.get(kinds.template, 'default', metadata.name)?.status?.capacity?.['cpu'],
  }))
  assert.deepEqual(found, [
    { name: 'large', replicas: 0, price: '0.19', most: '12', cpu: '16' },
    { name: 'medium', replicas: 0, price: '0.098', most: '12', cpu: '8' },
    { name: 'small', replicas: 0, price: '0.05', most: '12', cpu: '4' },
  ])
  hub.setScale(kinds.deployment, 'default', 'small', 1)
  await clock.advance(10_000)
  assert.deepEqual(
    cluster.cloud.instances().map(({ pricePerHour }) => pricePerHour),
    [0.05],
  )
})

test('the demonstration of an empty cluster brings its own MachineDeployments', async (t) => {
  const { cluster, hub } = await started(false)
  t.after(() => cluster.stop())
  assert.deepEqual(hub.list(kinds.deployment), [])
  const documents = parseAllDocuments(simulator.demonstration).map(
    (document) => document.toJS() as { readonly kind: string; readonly metadata: { readonly name: string } },
  )
  assert.deepEqual(
    documents.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    [
      ...['small', 'medium', 'large'].flatMap((size) => [
        `SimulatedMachineTemplate ${size}`,
        `MachineDeployment ${size}`,
      ]),
      'ClusterAPINodeClass standard',
      'NodePool standard',
      'Deployment demo',
    ],
  )
})

test('for the Cluster Autoscaler mode there are three MachineDeployments with sizes, one at zero with its capacity annotated', async (t) => {
  const { clock, cluster, hub } = await started(true, true)
  t.after(() => cluster.stop())
  await clock.advance(20_000)
  const found = hub.list(kinds.deployment).map(({ metadata: { annotations, labels, name }, spec }) => ({
    name,
    replicas: spec?.replicas,
    sizes: ['min', 'max'].map(
      (which) => annotations?.[`cluster.x-k8s.io/cluster-api-autoscaler-node-group-${which}-size`],
    ),
    annotated: annotations?.['capacity.cluster-autoscaler.kubernetes.io/cpu'],
    reported: hub.get(kinds.template, 'default', name)?.status?.capacity?.['cpu'],
    labels: Object.keys(labels ?? {}),
  }))
  const common = { labels: ['cluster.x-k8s.io/cluster-name'] }
  assert.deepEqual(found, [
    { name: 'batch', replicas: 0, sizes: ['0', '4'], annotated: undefined, reported: '8', ...common },
    { name: 'reserve', replicas: 0, sizes: ['0', '2'], annotated: '16', reported: undefined, ...common },
    { name: 'workers', replicas: 1, sizes: ['1', '6'], annotated: undefined, reported: '4', ...common },
  ])
  const [node, ...others] = cluster.server.localAs('kubectl').list(coreKinds.node)
  assert.deepEqual([node?.status?.capacity?.['cpu'], node?.spec?.taints, others], ['4', undefined, []])
  hub.setScale(kinds.deployment, 'default', 'reserve', 1)
  await clock.advance(20_000)
  const reserve = cluster.server
    .localAs('kubectl')
    .list(coreKinds.node)
    .find(({ metadata }) => metadata.labels?.['node.kubernetes.io/instance-type'] === 'large')
  assert.equal(reserve?.status?.capacity?.['cpu'], '16')
})
