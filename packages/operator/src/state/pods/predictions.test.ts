import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { OwnerReference, Pod } from '@tenon/api'
import { type Prediction, Predictions, type PredictionTarget } from './predictions.ts'

const web: PredictionTarget = { group: 'apps', kind: 'Deployment', name: 'web', uid: 'uid-web' }

function aPrediction(cpu: number, more: Partial<Prediction> = {}): Prediction {
  return {
    namespace: 'default',
    name: 'web',
    createdAt: '2026-01-01T00:00:00Z',
    target: web,
    containers: [{ container: 'app', requests: { cpu } }],
    ...more,
  }
}

function aPodOf(
  owner: Partial<OwnerReference> & Pick<OwnerReference, 'kind' | 'name'>,
  labels: Readonly<Record<string, string>> = {},
  namespace = 'default',
): Pod {
  const reference = { apiVersion: 'apps/v1', uid: `uid-${owner.name}`, controller: true, ...owner }
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pod', namespace, labels, ownerReferences: [reference] },
    spec: {
      containers: [
        { name: 'app', resources: { requests: { cpu: '1', memory: '1Gi' }, limits: { cpu: '2' } } },
        { name: 'side', resources: { requests: { cpu: '100m' } } },
      ],
    },
  }
}
const replica = aPodOf({ kind: 'ReplicaSet', name: 'web-abc' }, { 'pod-template-hash': 'abc' })
const cpuOf = ({ spec }: Pod) =>
  spec.containers.map(({ resources }) => resources?.requests?.['cpu']).join(' ')

describe('what pods will ask for when they are made again', () => {
  test('of a Deployment by its name, of other owners by their UID', () => {
    const predictions = new Predictions()
    assert.equal(predictions.remade(replica), replica)
    predictions.put(aPrediction(3000))
    assert.equal(cpuOf(predictions.remade(replica)), '3 100m')
    assert.equal(replica.spec.containers[0]?.resources?.requests?.['cpu'], '1', 'the pod stays as it is')
    const set = { ...web, kind: 'StatefulSet', name: 'db', uid: 'uid-db' }
    predictions.put(aPrediction(4000, { name: 'db', target: set }))
    assert.equal(cpuOf(predictions.remade(aPodOf({ kind: 'StatefulSet', name: 'db' }))), '4 100m')
    const other = aPodOf({ kind: 'StatefulSet', name: 'db', uid: 'other' })
    assert.equal(predictions.remade(other), other, 'a StatefulSet of the same name that was there before')
    const cron = { group: 'batch', kind: 'CronJob', name: 'report', uid: 'uid-report' }
    predictions.put(aPrediction(5000, { name: 'report', target: cron }))
    const job = aPodOf({ apiVersion: 'batch/v1', kind: 'Job', name: 'report-29312345' })
    assert.equal(cpuOf(predictions.remade(job)), '5 100m')
  })

  test('requests that are not predicted, limits and other containers stay', () => {
    const predictions = new Predictions()
    predictions.put(aPrediction(1500))
    const [app, side] = predictions.remade(replica).spec.containers
    assert.deepEqual(app?.resources, { requests: { cpu: '1500m', memory: '1Gi' }, limits: { cpu: '2' } })
    assert.equal(side, replica.spec.containers[1])
  })

  test('pods of others stay as they are', () => {
    const predictions = new Predictions()
    predictions.put(aPrediction(3000))
    for (const pod of [
      aPodOf({ kind: 'ReplicaSet', name: 'web-abc' }, { 'pod-template-hash': 'abc' }, 'other'),
      aPodOf({ kind: 'ReplicaSet', name: 'web-abc' }),
      aPodOf({ kind: 'ReplicaSet', name: 'webs-abc' }, { 'pod-template-hash': 'abc' }),
      aPodOf({ kind: 'ReplicaSet', name: 'web-abc', controller: false }, { 'pod-template-hash': 'abc' }),
      aPodOf(
        { apiVersion: 'example.com/v1', kind: 'ReplicaSet', name: 'web-abc' },
        { 'pod-template-hash': 'abc' },
      ),
      { ...replica, metadata: { ...replica.metadata, ownerReferences: [] } },
    ])
      assert.equal(predictions.remade(pod), pod)
  })

  test('BUF-99 of two on one target the older counts, and then the other', () => {
    const predictions = new Predictions()
    predictions.put(aPrediction(2000, { name: 'young', createdAt: '2026-02-01T00:00:00Z' }))
    predictions.put(aPrediction(3000, { name: 'old' }))
    assert.equal(predictions.of(replica)?.name, 'old')
    predictions.put(aPrediction(4000, { name: 'alike' }))
    assert.equal(predictions.of(replica)?.name, 'alike', 'of one age, the first by name')
    predictions.drop('default/alike')
    predictions.drop('default/old')
    assert.equal(cpuOf(predictions.remade(replica)), '2 100m')
    predictions.put(aPrediction(2000, { name: 'young', target: { ...web, name: 'other', uid: 'uid-other' } }))
    assert.equal(predictions.of(replica), undefined, 'it is about something else now')
  })

  test('ASK-29 what a container was promised by a resize in place is not promised to the next one', () => {
    const predictions = new Predictions()
    predictions.put(aPrediction(500))
    const containerStatuses = [{ name: 'app', allocatedResources: { cpu: '4' } }]
    const resized: Pod = { ...replica, status: { phase: 'Running', containerStatuses } }
    assert.deepEqual(predictions.remade(resized).status, { phase: 'Running' })
    const podLevel = { resources: { requests: { cpu: '4' } }, allocatedResources: { cpu: '4' } }
    const asWhole: Pod = { ...replica, status: { phase: 'Running', ...podLevel } }
    assert.deepEqual(predictions.remade(asWhole).status, { phase: 'Running' })
  })

  test('pods of one spec are made again with one spec, for as long as the same is predicted', () => {
    const predictions = new Predictions()
    predictions.put(aPrediction(3000))
    const first = predictions.remade(replica).spec
    assert.equal(predictions.remade({ ...replica }).spec, first)
    predictions.put(aPrediction(3500))
    assert.equal(cpuOf(predictions.remade(replica)), '3500m 100m')
  })
})

test('the version grows with every change to what pods are made again as', () => {
  const predictions = new Predictions()
  const versions = [predictions.version]
  const noted = (): void => {
    versions.push(predictions.version)
  }
  predictions.put(aPrediction(3000))
  noted()
  predictions.put(aPrediction(4000))
  noted()
  predictions.drop('default/web')
  noted()
  assert.deepEqual(
    versions,
    [...new Set(versions)].toSorted((a, b) => a - b),
  )
  predictions.drop('default/web')
  assert.equal(predictions.version, versions.at(-1), 'there was nothing to drop')
})
