/** ProvisioningRequests in the Cluster Autoscaler mode, against an API server that enforces rights. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  conditionOf,
  provisioningClasses,
  provisioningRequestCrd,
  type ProvisioningRequest,
} from '@tenon/api'
import { exampleManifests, ProcessStage, withRights } from './process-stage.test-support.ts'

const second = 1000
const minute = 60 * second
const day = 24 * 60 * minute

const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const requests = '/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests'
const templates = '/api/v1/namespaces/default/podtemplates'
const args = ['--enable-provisioning-requests']

/** What charts/cluster-autoscaler grants with the flag. */
const rights = [
  {
    apiGroups: ['autoscaling.x-k8s.io'],
    resources: ['provisioningrequests'],
    verbs: ['get', 'list', 'watch', 'delete'],
  },
  { apiGroups: ['autoscaling.x-k8s.io'], resources: ['provisioningrequests/status'], verbs: ['patch'] },
  { apiGroups: [''], resources: ['podtemplates'], verbs: ['get', 'list', 'watch'] },
]

async function open({ hasDefinition = true } = {}): Promise<ProcessStage> {
  const stage = await ProcessStage.open(withRights(exampleManifests('regular.yaml'), ...rights))
  if (hasDefinition) await stage.must('POST', crds, provisioningRequestCrd)
  await stage.addNodes('a')
  await stage.addPods({ keep: '3' }, 'a')
  stage.cloud.showsStarting = true
  return stage
}

/** A request for pods of three cores, as Kueue makes one. */
async function request(stage: ProcessStage, name: string, count = 2): Promise<void> {
  const container = { name: 'main', image: 'registry.k8s.io/pause', resources: { requests: { cpu: '3' } } }
  await stage.must('POST', templates, {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: `ppt-${name}-main` },
    template: { spec: { restartPolicy: 'Never', containers: [container] } },
  })
  await stage.must('POST', requests, {
    apiVersion: 'autoscaling.x-k8s.io/v1',
    kind: 'ProvisioningRequest',
    metadata: { name, labels: { 'kueue.x-k8s.io/managed': 'true' } },
    spec: {
      provisioningClassName: provisioningClasses.atomic,
      podSets: [{ podTemplateRef: { name: `ppt-${name}-main` }, count }],
    },
  })
}

async function stateOf(stage: ProcessStage, name: string, type: string): Promise<string> {
  const { status, body } = await stage.call('GET', `${requests}/${name}`)
  const condition = status === 404 ? undefined : conditionOf(body as ProvisioningRequest, type)
  return condition === undefined ? 'absent' : `${condition.status}/${condition.reason}`
}

test('GNG-50 a request gets its nodes with the rights of the chart, and ends in time', async () => {
  const stage = await open()
  const replica = stage.start('one', [...args, '--scale-down-enabled=false'])
  await stage.clock.advance(30 * second)
  await request(stage, 'job-one-1')
  await stage.clock.advance(30 * second)
  assert.deepEqual(stage.cloud.changes, ['pool +2'])
  assert.equal(await stateOf(stage, 'job-one-1', 'Accepted'), 'True/Accepted')
  assert.equal(await stateOf(stage, 'job-one-1', 'Provisioned'), 'True/CapacityIsProvisioned')
  assert.match(
    (await replica.get('/metrics')).text,
    /cluster_autoscaler_provisioning_requests_count\{class="best-effort-atomic-scale-up",state="booked"\} 1\n/,
  )
  await stage.addNodes('new-1', 'new-2')
  await stage.clock.advance(10 * minute)
  assert.equal(await stateOf(stage, 'job-one-1', 'BookingExpired'), 'True/CapacityReservationTimeExpired')
  const events = (await stage.call('GET', '/api/v1/namespaces/default/events')).body.items as readonly {
    readonly reason: string
    readonly involvedObject: { readonly kind: string }
  }[]
  const told = events.flatMap(({ reason, involvedObject }) =>
    involvedObject.kind === 'ProvisioningRequest' ? [reason] : [],
  )
  assert.deepEqual(told.toSorted(), [
    'CapacityIsProvisioned',
    'CapacityReservationTimeExpired',
    'TriggeredScaleUp',
  ])
  assert.deepEqual(
    stage.refused().filter((path) => /provisioningrequests|podtemplates/.test(path)),
    [],
  )
  replica.end()
  await stage.clock.advance(2 * second)
  await replica.ended
})

test('GNG-50 a definition that comes later is found without a restart', async () => {
  const stage = await open({ hasDefinition: false })
  const replica = stage.start('one', args)
  await stage.clock.advance(2 * minute)
  await stage.must('POST', crds, provisioningRequestCrd)
  await request(stage, 'late')
  await stage.clock.advance(2 * minute)
  assert.equal(await stateOf(stage, 'late', 'Provisioned'), 'True/CapacityIsProvisioned')
  replica.end()
  await stage.clock.advance(2 * second)
  await replica.ended
})

test('GNG-50 a dry run writes nothing', async () => {
  const stage = await open()
  const replica = stage.start('one', [...args, '--dry-run'])
  await stage.clock.advance(10 * second)
  await request(stage, 'r')
  await stage.clock.advance(2 * minute)
  assert.equal(await stateOf(stage, 'r', 'Accepted'), 'absent')
  assert.deepEqual(stage.cloud.changes, [])
  replica.end()
  await stage.clock.advance(2 * second)
  await replica.ended
})

const isStatus = ({ method, path }: { readonly method: string; readonly path: string }) =>
  method === 'PATCH' && path.includes('/provisioningrequests/')
const nth = (count: number) => {
  let seen = 0
  return (each: { readonly method: string; readonly path: string }) => isStatus(each) && ++seen === count
}

/** Fewer loops are enough. */
const longer = [...args, '--scale-down-enabled=false', '--scan-interval=30s']

describe('GNG-50 a process that ends', () => {
  const points = [
    ['before it accepts the request', 1, 'before'],
    ['when it has accepted the request', 1, 'after'],
    ['before it says that nodes are asked for', 2, 'before'],
    ['when it has said that nodes are asked for', 2, 'after'],
    ['before it ends the booking', 3, 'before'],
    ['when it has ended the booking', 3, 'after'],
  ] as const
  for (const [name, write, when] of points)
    test(`${name} leaves the rest to the next one`, async () => {
      const stage = await open()
      const first = stage.start('one', longer)
      first.cutAt(nth(write), when)
      await stage.clock.advance(40 * second)
      await request(stage, 'r')
      await stage.clock.advance(write === 3 ? 12 * minute : minute)
      if (write === 3) await stage.addNodes('new-1', 'new-2')
      const next = stage.start('two', longer)
      await stage.clock.advance(2 * minute)
      assert.match(await stateOf(stage, 'r', 'Provisioned'), /^True\//)
      assert.deepEqual(stage.cloud.changes, ['pool +2'])
      if (write < 3) await stage.addNodes('new-1', 'new-2')
      await stage.clock.advance(11 * minute)
      assert.equal(await stateOf(stage, 'r', 'BookingExpired'), 'True/CapacityReservationTimeExpired')
      assert.deepEqual(stage.cloud.changes, ['pool +2'])
      next.end()
      await stage.clock.advance(2 * second)
      await next.ended
    })

  test('when the cloud has made the group larger does not make the next one ask again', async () => {
    const stage = await open()
    const first = stage.start('one', longer)
    stage.cloud.grown = () => {
      first.cut()
    }
    await stage.clock.advance(40 * second)
    await request(stage, 'r')
    await stage.clock.advance(minute)
    assert.equal(await stateOf(stage, 'r', 'Provisioned'), 'absent')
    const next = stage.start('two', longer)
    await stage.clock.advance(2 * minute)
    assert.equal(await stateOf(stage, 'r', 'Provisioned'), 'True/CapacityIsFound')
    assert.deepEqual(stage.cloud.changes, ['pool +2'])
    next.end()
    await stage.clock.advance(2 * second)
    await next.ended
  })

  test('before it deletes an old request leaves that to the next one', async () => {
    const stage = await open()
    await request(stage, 'r')
    const { body } = await stage.must('GET', `${requests}/r`)
    const lastTransitionTime = new Date(stage.clock.now() - 7 * day).toISOString()
    const conditions = [
      { type: 'Failed', status: 'True', reason: 'Expired', message: '', lastTransitionTime },
    ]
    await stage.must('PUT', `${requests}/r/status`, { ...body, status: { conditions } })
    const first = stage.start('one', args)
    first.cutAt(
      ({ method, path }) => method === 'DELETE' && path.includes('/provisioningrequests/'),
      'before',
    )
    await stage.clock.advance(minute)
    assert.equal((await stage.call('GET', `${requests}/r`)).status, 200)
    const next = stage.start('two', args)
    await stage.clock.advance(2 * minute)
    assert.equal((await stage.call('GET', `${requests}/r`)).status, 404)
    next.end()
    await stage.clock.advance(2 * second)
    await next.ended
  })
})
