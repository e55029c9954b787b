/** The process of the Cluster Autoscaler mode against an API server that enforces the rights of the manifests. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TopologySpreadConstraint } from '@tenon/api'
import {
  exampleManifests,
  leasePath,
  ProcessStage,
  statusPath,
  withoutRights,
} from './process-stage.test-support.ts'

const second = 1000
const minute = 60 * second

test('CAS-105 the example manifest starts under its rights, and removes what is not needed', async () => {
  const stage = await ProcessStage.open()
  await stage.addNodes('a', 'b')
  const replica = stage.start('one')
  await stage.clock.advance(30 * second)
  const lease = (await stage.call('GET', leasePath)).body
  assert.equal(lease.spec.holderIdentity, 'one')
  const { status } = (await stage.call('GET', statusPath)).body.data
  assert.match(status, /^autoscalerStatus: Running\n[^]*\ntime: /)
  assert.deepEqual(await replica.get('/health-check'), { status: 200, text: 'OK' })
  assert.match((await replica.get('/metrics')).text, /cluster_autoscaler_nodes_count\{state="ready"\} 2\n/)
  await stage.clock.advance(15 * minute)
  assert.equal(stage.cloud.changes.length, 1, stage.cloud.changes.join())
  assert.equal(stage.cloud.group0.targetSize, 1)
  const events = (await stage.call('GET', '/api/v1/events')).body.items as readonly {
    readonly reason: string
    readonly source: { readonly component: string }
  }[]
  const reasons = new Set(
    events.filter(({ source }) => source.component === 'cluster-autoscaler').map(({ reason }) => reason),
  )
  assert.ok(reasons.has('ScaleDown') && reasons.has('ScaleDownEmpty'), [...reasons].join())
  const refused = stage.refused().filter((each) => !each.includes('/leases?'))
  // Rights that Cluster Autoscaler's manifests do not grant are asked for once, and done without.
  assert.deepEqual(refused.toSorted(), [
    'GET /apis/resource.k8s.io/v1/deviceclasses?limit=1',
    'GET /apis/resource.k8s.io/v1/resourceclaims?limit=1',
    'GET /apis/resource.k8s.io/v1/resourceslices?limit=1',
    'GET /apis/storage.k8s.io/v1/volumeattachments?limit=1',
  ])
  const verbs = new Set(stage.seen.map(({ method }) => method))
  assert.ok(verbs.has('PUT'))
  replica.end()
  await stage.clock.advance(5 * second)
  assert.equal(await replica.ended, undefined)
})

test('CAS-38 asked to end, the leader removes the status and gives the lease back', async () => {
  const stage = await ProcessStage.open()
  await stage.addNodes('a')
  const replica = stage.start('one')
  await stage.clock.advance(30 * second)
  assert.equal((await stage.call('GET', statusPath)).status, 200)
  replica.end()
  await stage.clock.advance(2 * second)
  assert.equal(await replica.ended, undefined)
  assert.equal((await stage.call('GET', statusPath)).status, 404)
  assert.equal((await stage.call('GET', leasePath)).body.spec.holderIdentity, '')
})

test('CAS-34 CAS-38 a standby is healthy and writes nothing; it leads once the leader is cut off, which ends', async () => {
  const stage = await ProcessStage.open()
  await stage.addNodes('a')
  const first = stage.start('one')
  await stage.clock.advance(30 * second)
  const standby = stage.start('two')
  await stage.clock.advance(30 * minute)
  assert.deepEqual(await standby.get('/health-check'), { status: 200, text: 'OK' })
  assert.equal((await stage.call('GET', leasePath)).body.spec.holderIdentity, 'one')
  first.cut()
  let lost: Error | undefined
  const ending = async () => {
    lost = await first.ended
  }
  void ending()
  // It also tries to give the lease back.
  await stage.clock.advanceUntil(() => lost !== undefined, 60 * second)
  assert.match(lost?.message ?? '', /^lost master: lease kube-system\/cluster-autoscaler is lost/)
  // Who lost it cannot say that nobody leads.
  assert.equal((await stage.call('GET', statusPath)).status, 200)
  await stage.clock.advance(10 * second)
  assert.equal((await stage.call('GET', leasePath)).body.spec.holderIdentity, 'two')
  standby.end()
  await stage.clock.advance(2 * second)
  assert.equal(await standby.ended, undefined)
})

test('a standby that is asked to end leaves the status of the leader alone', async () => {
  const stage = await ProcessStage.open()
  await stage.addNodes('a')
  const leader = stage.start('one')
  await stage.clock.advance(30 * second)
  const standby = stage.start('two')
  await stage.clock.advance(30 * second)
  standby.end()
  await stage.clock.advance(2 * second)
  assert.equal(await standby.ended, undefined)
  assert.equal((await stage.call('GET', statusPath)).status, 200)
  assert.equal((await stage.call('GET', leasePath)).body.spec.holderIdentity, 'one')
  leader.end()
  await stage.clock.advance(2 * second)
  await leader.ended
})

test('CAS-103 without a status ConfigMap there is none, and the rest works', async () => {
  const stage = await ProcessStage.open()
  await stage.addNodes('a', 'b')
  const replica = stage.start('one', ['--write-status-configmap=false'])
  await stage.clock.advance(15 * minute)
  assert.equal((await stage.call('GET', statusPath)).status, 404)
  assert.equal(stage.cloud.group0.targetSize, 1)
  const events = (await stage.call('GET', '/api/v1/events')).body.items as readonly {
    readonly involvedObject: { readonly kind: string }
  }[]
  assert.ok(events.length > 0)
  assert.ok(events.every(({ involvedObject }) => involvedObject.kind !== 'ConfigMap'))
  replica.end()
  await stage.clock.advance(2 * second)
  assert.equal(await replica.ended, undefined)
})

test('a dry run decides, and writes nothing', async () => {
  const stage = await ProcessStage.open()
  await stage.addNodes('a', 'b')
  const replica = stage.start('one', ['--dry-run'])
  await stage.clock.advance(20 * minute)
  assert.match((await replica.get('/metrics')).text, /cluster_autoscaler_unneeded_nodes_count [12]\n/)
  assert.deepEqual(
    stage.seen.filter(({ method }) => method !== 'GET'),
    [],
  )
  assert.deepEqual(stage.cloud.changes, [])
  replica.end()
  await stage.clock.advance(2 * second)
  assert.equal(await replica.ended, undefined)
})

test('kinds that may not be read are done without', async () => {
  const manifests = withoutRights(exampleManifests('regular.yaml'), 'namespaces', 'csinodes')
  const stage = await ProcessStage.open(manifests)
  await stage.addNodes('a')
  const replica = stage.start('one')
  await stage.clock.advance(30 * second)
  assert.match((await stage.call('GET', statusPath)).body.data.status, /autoscalerStatus: Running/)
  const refused = stage.refused().filter((each) => !each.includes('/leases?'))
  assert.equal(new Set(refused).size, refused.length, refused.join('\n'))
  replica.end()
  await stage.clock.advance(2 * second)
  assert.equal(await replica.ended, undefined)
})

/** Waits for two new nodes with pods of which each node holds two of three sizes, and gives the requests about them. */
async function nominations(manifests = exampleManifests('regular.yaml')): Promise<readonly string[]> {
  const stage = await ProcessStage.open(manifests)
  await stage.addNodes('a')
  const replica = stage.start('one', ['--planned-placement'])
  await stage.clock.advance(30 * second)
  await stage.addPods({ large: '3', middle: '2', other: '2', small: '1' })
  await stage.addPods({ full: '4' }, 'a')
  await stage.clock.advance(15 * second)
  await stage.addNodes('b', 'c')
  await stage.clock.advance(15 * minute)
  const asked = stage.seen.filter(({ method, path }) => method === 'PUT' && path.endsWith('/status'))
  assert.match((await stage.call('GET', statusPath)).body.data.status, /autoscalerStatus: Running/)
  replica.end()
  await stage.clock.advance(2 * second)
  assert.equal(await replica.ended, undefined)
  return asked.map(({ path, status }) => `${path.split('/').at(-2)} ${status}`)
}

test('the example manifest grants what --planned-placement takes', async () => {
  assert.deepEqual(await nominations(), ['large 200', 'small 200', 'middle 200', 'other 200'])
})

test('--planned-placement goes on without its right, and asks for it only now and then', async () => {
  const manifests = withoutRights(exampleManifests('regular.yaml'), 'pods/status')
  const asked = await nominations(manifests)
  assert.ok(asked.length > 0 && asked.length <= 8, asked.join())
  assert.ok(asked.every((each) => each.endsWith(' 403')))
})

test('default constraints of the scheduler spread the pods of a Service over new nodes', async () => {
  const grown = async (constraints: readonly TopologySpreadConstraint[]) => {
    const stage = await ProcessStage.open()
    await stage.addNodes('a')
    await stage.addPods({ full: '4' }, 'a')
    await stage.must('POST', '/api/v1/namespaces/default/services', {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: { selector: { tier: 'web' }, ports: [{ port: 80 }] },
    })
    const replica = stage.start('one', [], constraints)
    await stage.addPods({ one: '1', two: '1', three: '1' })
    await stage.clock.advance(30 * second)
    replica.end()
    await stage.clock.advance(2 * second)
    await replica.ended
    return stage.cloud.changes
  }
  assert.deepEqual(await grown([]), ['pool +1'])
  const hard = { topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'DoNotSchedule' } as const
  // Of the pods that are counted, one runs on the node that is full.
  assert.deepEqual(await grown([{ ...hard, maxSkew: 1 }]), ['pool +2'])
})
