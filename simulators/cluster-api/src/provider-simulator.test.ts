/** The simulated Cluster API as the command line starts it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createCredentials, startDevCluster } from '@tenon/devcluster'
import { SeededRandom, silentLogger, VirtualClock } from '@tenon/runtime'
import { parseAllDocuments } from 'yaml'
import { defaultGroup } from '@tenon/provider-cluster-api'
import { simulatedKinds } from './kinds.ts'
import { simulator } from './provider-simulator.ts'

async function started(isHurried: boolean) {
  const clock = new VirtualClock()
  const cluster = startDevCluster({
    clock,
    random: new SeededRandom('up'),
    logger: silentLogger,
    credentials: await createCredentials(clock.now()),
    simulator: simulator.cloud({ isHurried, bootDelayMs: 2_000 }),
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
