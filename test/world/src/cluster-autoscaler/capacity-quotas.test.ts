/** CapacityQuotas in the Cluster Autoscaler mode, against an API server that enforces rights. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  capacityQuotaCrd,
  type CapacityQuota,
  conditionOf,
  provisioningClasses,
  provisioningRequestCrd,
  quotaValidType,
} from '@tenon/api'
import {
  exampleManifests,
  ProcessStage,
  type Replica,
  statusPath,
  withRights,
} from './process-stage.test-support.ts'

const second = 1000
const minute = 60 * second

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const quotas = '/apis/autoscaling.x-k8s.io/v1beta1/capacityquotas'
const group = ['autoscaling.x-k8s.io']
const reading = ['get', 'list', 'watch']

/** What charts/cluster-autoscaler grants. */
const rights = [
  { apiGroups: group, resources: ['capacityquotas'], verbs: reading },
  { apiGroups: group, resources: ['capacityquotas/status'], verbs: ['update'] },
]
const requestRights = [
  { apiGroups: group, resources: ['provisioningrequests'], verbs: [...reading, 'delete'] },
  { apiGroups: group, resources: ['provisioningrequests/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['podtemplates'], verbs: reading },
]

/** One node of four cores, in a group of up to five. */
async function open({ hasDefinition = true } = {}): Promise<ProcessStage> {
  const stage = await ProcessStage.open(
    withRights(exampleManifests('regular.yaml'), ...rights, ...requestRights),
  )
  if (hasDefinition) await stage.must('POST', crds, capacityQuotaCrd)
  await stage.addNodes('a')
  await stage.addPods({ keep: '3' }, 'a')
  stage.cloud.showsStarting = true
  return stage
}

async function addQuota(stage: ProcessStage, name: string, resources: object, spec: object = {}) {
  await stage.must('POST', quotas, {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityQuota',
    metadata: { name },
    spec: { limits: { resources }, ...spec },
  })
}

async function setLimits(stage: ProcessStage, name: string, resources: object): Promise<void> {
  const { body } = await stage.must('GET', `${quotas}/${name}`)
  await stage.must('PUT', `${quotas}/${name}`, { ...body, spec: { ...body.spec, limits: { resources } } })
}

async function quotaOf(stage: ProcessStage, name: string): Promise<CapacityQuota> {
  return (await stage.must('GET', `${quotas}/${name}`)).body as CapacityQuota
}

/** Pods that take a node each. */
const waiting = { p1: '3', p2: '3', p3: '3', p4: '3' }

/** `Kind name: reason: message`. */
async function events(stage: ProcessStage): Promise<readonly string[]> {
  interface Shown {
    readonly reason: string
    readonly message: string
    readonly involvedObject: { readonly kind: string; readonly name: string }
  }
  const { items } = (await stage.must('GET', '/api/v1/events')).body as { readonly items: readonly Shown[] }
  return items.map(
    ({ involvedObject: { kind, name }, reason, message }) => `${kind} ${name}: ${reason}: ${message}`,
  )
}

async function statusOf(stage: ProcessStage): Promise<string> {
  return (await stage.must('GET', statusPath)).body.data.status as string
}

async function ended(stage: ProcessStage, replica: Replica): Promise<void> {
  replica.end()
  await stage.clock.advance(2 * second)
  await replica.ended
}

const start = (stage: ProcessStage, identity: string, ...more: readonly string[]) =>
  stage.start(identity, ['--scale-down-enabled=false', ...more])

test('WNT-8 scale-up stops at a quota; events, the status ConfigMap and the quota say so', async () => {
  const stage = await open()
  await addQuota(stage, 'all', { cpu: 12, memory: '1Ti', 'example.com/gpu': 0 })
  await addQuota(stage, 'others', { nodes: 0 }, { selector: { matchLabels: { team: 'other' } } })
  const replica = start(stage, 'one')
  await stage.clock.advance(30 * second)
  await stage.addPods(waiting)
  await stage.clock.advance(2 * minute)
  assert.deepEqual(stage.cloud.changes, ['pool +2'])
  const refusal =
    'NotTriggerScaleUp: pod didn\'t trigger scale-up: 1 exceeded quota: "all", resources: cpu (0 of 12 left)'
  assert.ok(
    (await events(stage)).some((text) => text.endsWith(refusal)),
    (await events(stage)).join('\n'),
  )
  assert.match(
    await statusOf(stage),
    /capacityQuotas:\n- message: "?cpu: 0 of 12 left; memory: .* of 1Ti left; example\.com\/gpu: 0 of 0 left"?\n {2}name: all\n- message: "?nodes: 0 of 0 left/,
  )
  assert.deepEqual((await quotaOf(stage, 'all')).status?.used?.resources, {
    cpu: '4',
    memory: '8Gi',
    'example.com/gpu': '0',
  })

  await stage.addNodes('new-1', 'new-2')
  await stage.clock.advance(30 * second)
  const quota = await quotaOf(stage, 'all')
  assert.equal(quota.status?.used?.resources?.['cpu'], '12')
  assert.equal(quota.status?.observedGeneration, 1)
  assert.equal(conditionOf(quota, 'Reconciled')?.reason, 'ReconciliationSucceeded')
  const valid = conditionOf(quota, quotaValidType)
  assert.deepEqual([valid?.status, valid?.observedGeneration], ['True', 1])
  assert.deepEqual(
    stage.refused().filter((path) => path.includes('capacityquotas')),
    [],
  )
  const writes = stage.seen.filter(({ path }) => path.endsWith('/others/status')).length
  assert.equal(writes, 1, 'a status that stays the same is written once')
  await ended(stage, replica)
})

test('WNT-8 nodes that were asked for count after a restart', async () => {
  const stage = await open()
  await addQuota(stage, 'all', { nodes: 3 })
  const first = start(stage, 'one', '--leader-elect=false')
  await stage.clock.advance(30 * second)
  await stage.addPods(waiting)
  await stage.clock.advance(20 * second)
  first.cut()
  const next = start(stage, 'two', '--leader-elect=false')
  await stage.clock.advance(2 * minute)
  assert.deepEqual(stage.cloud.changes, ['pool +2'])
  await ended(stage, next)
})

test('WNT-8 a quota that cannot be read is not enforced and says so, another one is', async () => {
  const stage = await open()
  const matchExpressions = [{ key: 'a', operator: 'Near' }]
  await addQuota(stage, 'odd', { nodes: 1 }, { selector: { matchExpressions } })
  await addQuota(stage, 'all', { nodes: 2 })
  const replica = start(stage, 'one')
  await stage.clock.advance(30 * second)
  await stage.addPods(waiting)
  await stage.clock.advance(2 * minute)
  assert.deepEqual(stage.cloud.changes, ['pool +1'])
  const quota = await quotaOf(stage, 'odd')
  assert.equal(conditionOf(quota, 'Reconciled')?.reason, 'ReconciliationFailed')
  assert.equal(conditionOf(quota, quotaValidType)?.status, 'False')
  const told =
    'spec.selector.matchExpressions[0] has the operator "Near"; use In, NotIn, Exists or DoesNotExist'
  assert.ok((await events(stage)).includes(`CapacityQuota odd: ReconciliationFailed: ${told}`))
  assert.ok((await statusOf(stage)).includes('not enforced: spec.selector.matchExpressions[0] has'))
  await ended(stage, replica)
})

test('WNT-10 a quota that is lowered deletes nothing; raised, deleted, it counts from the next loop on', async () => {
  const stage = await open()
  await addQuota(stage, 'all', { nodes: 2 })
  const replica = stage.start('one', ['--scale-down-unneeded-time=20s', '--scale-down-delay-after-add=20s'])
  await stage.clock.advance(30 * second)
  await setLimits(stage, 'all', { nodes: 0 })
  await stage.addPods(waiting)
  await stage.clock.advance(2 * minute)
  assert.deepEqual(stage.cloud.changes, [])
  await setLimits(stage, 'all', { nodes: 3 })
  await stage.clock.advance(20 * second)
  assert.deepEqual(stage.cloud.changes, ['pool +2'])
  await stage.must('DELETE', `${quotas}/all`)
  await stage.clock.advance(30 * second)
  assert.deepEqual(stage.cloud.changes, ['pool +2', 'pool +2'])
  await ended(stage, replica)
})

test('WNT-9 without the definition nothing is watched; one that comes later counts within a minute', async () => {
  const stage = await open({ hasDefinition: false })
  const replica = start(stage, 'one')
  await stage.clock.advance(3 * minute)
  const asked = stage.seen.filter(({ path }) => path.includes('capacityquotas'))
  assert.deepEqual(asked, [])
  await stage.must('POST', crds, capacityQuotaCrd)
  await addQuota(stage, 'all', { nodes: 2 })
  await stage.clock.advance(70 * second)
  await stage.addPods(waiting)
  await stage.clock.advance(minute)
  assert.deepEqual(stage.cloud.changes, ['pool +1'])
  await ended(stage, replica)
})

test('WNT-8 an atomic ProvisioningRequest that a quota cannot hold whole gets nothing', async () => {
  const stage = await open()
  await stage.must('POST', crds, provisioningRequestCrd)
  await addQuota(stage, 'all', { cpu: 12 })
  const replica = start(stage, 'one', '--enable-provisioning-requests')
  await stage.clock.advance(30 * second)
  const container = { name: 'main', image: 'registry.k8s.io/pause', resources: { requests: { cpu: '3' } } }
  await stage.must('POST', '/api/v1/namespaces/default/podtemplates', {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: 'gang' },
    template: { spec: { restartPolicy: 'Never', containers: [container] } },
  })
  const requests = '/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests'
  await stage.must('POST', requests, {
    apiVersion: 'autoscaling.x-k8s.io/v1',
    kind: 'ProvisioningRequest',
    metadata: { name: 'gang' },
    spec: {
      provisioningClassName: provisioningClasses.atomic,
      podSets: [{ podTemplateRef: { name: 'gang' }, count: 3 }],
    },
  })
  await stage.clock.advance(minute)
  assert.deepEqual(stage.cloud.changes, [])
  const { body } = await stage.must('GET', `${requests}/gang`)
  assert.match(JSON.stringify(body.status), /exceeded quota: \\"all\\", resources: cpu \(8 of 12 left\)/)
  await setLimits(stage, 'all', { cpu: 16 })
  await stage.clock.advance(10 * minute)
  assert.deepEqual(stage.cloud.changes, ['pool +3'])
  await ended(stage, replica)
})
