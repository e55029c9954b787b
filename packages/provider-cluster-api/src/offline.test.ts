import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KubeObject } from '@tenon/api'
import { offlineCatalogue } from './offline.ts'
import { aDeployment, names } from './testing/deployments.test-support.ts'

const noFile = () => Promise.reject(new Error('no file is read'))

function aClass(spec: object = {}): KubeObject & { readonly spec: object } {
  return {
    apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
    kind: 'ClusterAPINodeClass',
    metadata: { name: 'default' },
    spec,
  }
}

test('without MachineDeployments among the files nothing is known of types', async () => {
  const { typesOf, problems } = await offlineCatalogue({}, noFile)
  assert.deepEqual(typesOf(undefined), { offered: [], known: [], isPartial: true })
  assert.deepEqual(problems, [])
})

test('MachineDeployments among the files are the types that NodePools are held against', async () => {
  const { typesOf } = await offlineCatalogue({}, noFile)
  const others: readonly KubeObject[] = [
    aDeployment({ name: 'a', labels: { tier: 'a' } }),
    aDeployment({ name: 'b' }),
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'c', namespace: 'default' } },
  ]
  const { offered, known, isPartial } = typesOf(undefined, others)
  assert.deepEqual(
    offered.map(({ name }) => name),
    ['a', 'b'],
  )
  assert.equal(known, offered)
  assert.equal(isPartial, undefined)
  const selecting = aClass({ scalableResourceSelector: { matchLabels: { tier: 'a' } } })
  assert.deepEqual(
    typesOf(selecting, others).offered.map(({ name }) => name),
    ['a'],
  )
})

test('one that cannot be read without its template makes what is known partial; a template among the files helps', async () => {
  const { typesOf } = await offlineCatalogue({}, noFile)
  const apiGroup = 'infrastructure.cluster.x-k8s.io'
  const infrastructureRef = { apiGroup, kind: 'DevMachineTemplate', name: 'large' }
  const deployment = aDeployment({ name: 'a', bare: true, template: { spec: { infrastructureRef } } })
  const others: readonly KubeObject[] = [deployment, aDeployment({ name: 'b' })]
  assert.equal(typesOf(undefined, others).isPartial, true)
  assert.deepEqual(
    typesOf(undefined, others).offered.map(({ name }) => name),
    ['b'],
  )
  const template = {
    apiVersion: `${apiGroup}/v1beta1`,
    kind: 'DevMachineTemplate',
    metadata: { name: 'large', namespace: 'default' },
    status: { capacity: { cpu: '2', memory: '4Gi' } },
  }
  const { offered, isPartial } = typesOf(undefined, [...others, template])
  assert.equal(isPartial, undefined)
  assert.equal(offered[0]?.capacity['cpu'], 2000)
})

test('several Clusters, or a selector that is not understood, make nothing known', async () => {
  const { typesOf, findingsOf } = await offlineCatalogue({}, noFile)
  const others = [aDeployment({ name: 'a' }), aDeployment({ name: 'b', spec: { clusterName: 'other' } })]
  assert.equal(typesOf(undefined, others).isPartial, true)
  const scoped = await offlineCatalogue({ CLUSTER_API_CLUSTER_NAME: 'other' }, noFile)
  assert.deepEqual(
    scoped.typesOf(undefined, others).offered.map(({ name }) => name),
    ['b'],
  )
  const odd = aClass({ scalableResourceSelector: { matchExpressions: [{ key: 'a', operator: 'In' }] } })
  assert.equal(typesOf(odd, others).isPartial, true)
  assert.deepEqual(
    findingsOf(odd).map(({ field, severity }) => `${severity} ${field}`),
    ['error spec.scalableResourceSelector.matchExpressions[0].values'],
  )
})

test('the price file counts, and a wrong one is told', async () => {
  const env = { CLUSTER_API_PRICES_PATH: 'prices.json' }
  const priced = await offlineCatalogue(env, () => Promise.resolve('{"a": 2}'))
  const others = [aDeployment({ name: 'a' }), aDeployment({ name: 'b', annotations: { [names.price]: '3' } })]
  assert.deepEqual(
    priced.typesOf(undefined, others).offered.map(({ offerings }) => offerings[0]?.pricePerHour),
    [2, 3],
  )
  const { problems } = await offlineCatalogue(env, () => Promise.resolve('{"a": "much"}'))
  assert.equal(problems.length, 1)
  assert.match(problems[0]?.message ?? '', /^a: is "much"; write a price/)
})
