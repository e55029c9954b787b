/** PodGroups as the API server of Kubernetes 1.36 takes them (gangs.md 5.2). */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { aPod, podsPath, TestServer } from '../api-server.test-support.ts'

const path = '/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups'
const workloadsPath = '/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads'
const apiVersion = 'scheduling.k8s.io/v1alpha2'

const aGroup = (spec: object, name = 'train') => ({
  apiVersion,
  kind: 'PodGroup',
  metadata: { name },
  spec,
})
const gang = (minCount: number) => ({ schedulingPolicy: { gang: { minCount } } })

describe('PodGroups', () => {
  test('a group gets its default and the finalizer that keeps it while pods run', async () => {
    const api = new TestServer()
    const { status, body } = await api.call('POST', path, aGroup(gang(4)))
    assert.equal(status, 201)
    assert.deepEqual(body.metadata.finalizers, ['scheduling.k8s.io/podgroup-protection'])
    assert.deepEqual(body.spec, { ...gang(4), disruptionMode: 'Pod' })
  })

  test('the policy basic is an empty object that stays', async () => {
    const api = new TestServer()
    const { body } = await api.call('POST', path, aGroup({ schedulingPolicy: { basic: {} } }))
    assert.deepEqual(body.spec.schedulingPolicy, { basic: {} })
  })

  const bad: readonly (readonly [what: string, spec: object, message: RegExp])[] = [
    ['no policy', { schedulingPolicy: {} }, /spec\.schedulingPolicy: .*must specify one of: `basic`, `gang`/],
    [
      'both policies',
      { schedulingPolicy: { basic: {}, gang: { minCount: 1 } } },
      /must specify exactly one of: `basic`, `gang`/,
    ],
    ['none to run together', gang(0), /spec\.schedulingPolicy\.gang\.minCount: Required value/],
    ['less than none', gang(-1), /minCount: Invalid value: -1: must be greater than or equal to 1/],
    [
      'no minCount',
      { schedulingPolicy: { gang: {} } },
      /spec\.schedulingPolicy\.gang\.minCount: Required value/,
    ],
    ['no policy at all', {}, /spec\.schedulingPolicy: .*must specify one of: `basic`, `gang`/],
    ['a policy that is null', { schedulingPolicy: { gang: null } }, /must specify one of: `basic`, `gang`/],
    [
      'two topology keys',
      { ...gang(2), schedulingConstraints: { topology: [{ key: 'a' }, { key: 'b' }] } },
      /topology: Too many: must have at most 1/,
    ],
    [
      'a key that is none',
      { ...gang(2), schedulingConstraints: { topology: [{ key: 'no key' }] } },
      /topology\[0\]\.key: Invalid value: "no key"/,
    ],
    [
      'a mode that is none',
      { ...gang(2), disruptionMode: 'Some' },
      /disruptionMode: Unsupported value: "Some"/,
    ],
    ['a claim of two kinds', { ...gang(2), resourceClaims: [{ name: 'a' }] }, /must specify exactly one of/],
  ]
  for (const [what, spec, message] of bad)
    test(`${what} is refused`, async () => {
      const api = new TestServer()
      const { status, body } = await api.call('POST', path, aGroup(spec))
      assert.equal(status, 422, body.message)
      assert.match(body.message, message)
    })

  test('a priority that no class gives is refused', async () => {
    const api = new TestServer()
    const { status, body } = await api.call('POST', path, aGroup({ ...gang(2), priority: 5 }))
    assert.equal(status, 403)
    assert.match(body.message, /priority set in the pod group \(5\) must match the priority computed \(0\)/)
  })

  test('the spec does not change, the status does', async () => {
    const api = new TestServer()
    await api.call('POST', path, aGroup(gang(4)))
    const refused = await api.merge(`${path}/train`, { spec: gang(3) })
    assert.equal(refused.status, 422)
    assert.match(refused.body.message, /spec: Invalid value: .*field is immutable/)
    const conditions = [
      {
        type: 'PodGroupScheduled',
        status: 'True',
        reason: 'Scheduled',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ]
    const written = await api.merge(`${path}/train/status`, { status: { conditions } })
    assert.equal(written.status, 200)
    assert.equal(written.body.status.conditions[0].status, 'True')
  })

  test('a Workload that is named must exist and have the template', async () => {
    const api = new TestServer()
    const named = (podGroupTemplateName: string) =>
      aGroup({ ...gang(2), podGroupTemplateRef: { workload: { workloadName: 'job', podGroupTemplateName } } })
    assert.equal((await api.call('POST', path, named('workers'))).status, 403)
    const workload = {
      apiVersion,
      kind: 'Workload',
      metadata: { name: 'job' },
      spec: { podGroupTemplates: [{ name: 'workers', ...gang(2) }] },
    }
    assert.equal((await api.call('POST', workloadsPath, workload)).status, 201)
    assert.match(
      (await api.call('POST', path, named('others'))).body.message,
      /has no podGroupTemplate others/,
    )
    assert.equal((await api.call('POST', path, named('workers'))).status, 201)
  })

  test('a PriorityClass gives the priority', async () => {
    const api = new TestServer()
    const wanted = aGroup({ ...gang(2), priorityClassName: 'high' })
    assert.match(
      (await api.call('POST', path, wanted)).body.message,
      /no PriorityClass with name high was found/,
    )
    await api.call('POST', '/apis/scheduling.k8s.io/v1/priorityclasses', {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'high' },
      value: 7,
    })
    assert.equal((await api.call('POST', path, wanted)).body.spec.priority, 7)
  })

  test('the group of a pod does not change', async () => {
    const api = new TestServer()
    const pod = aPod('p')
    await api.call('POST', podsPath, {
      ...pod,
      spec: { ...pod.spec, schedulingGroup: { podGroupName: 'train' } },
    })
    const { status } = await api.merge(`${podsPath}/p`, {
      spec: { schedulingGroup: { podGroupName: 'other' } },
    })
    assert.equal(status, 422)
  })

  test('kubectl shows policy, minimum and whether it is scheduled', async () => {
    const api = new TestServer()
    await api.call('POST', path, aGroup(gang(4)))
    const accept = 'application/json;as=Table;v=v1;g=meta.k8s.io'
    const { body } = await api.call('GET', path, undefined, { accept })
    assert.deepEqual(body.rows[0].cells.slice(0, 4), ['train', 'Gang', '4', '<none>'])
  })
})

describe('without gates', () => {
  test('without GenericWorkload nothing is served, and new pods belong to no group', async () => {
    const api = new TestServer(undefined, { featureGates: { genericWorkload: false } })
    assert.equal((await api.call('GET', path)).status, 404)
    assert.equal((await api.call('GET', workloadsPath)).status, 404)
    const pod = aPod('p')
    const spec = { ...pod.spec, schedulingGroup: { podGroupName: 'train' } }
    const { status, body } = await api.call('POST', podsPath, { ...pod, spec })
    assert.equal(status, 201)
    assert.equal(body.spec.schedulingGroup, undefined)
  })

  test('without TopologyAwareWorkloadScheduling the topology is dropped without a word', async () => {
    const api = new TestServer(undefined, { featureGates: { topologyAwareWorkloadScheduling: false } })
    const wanted = {
      ...gang(2),
      schedulingConstraints: { topology: [{ key: 'topology.kubernetes.io/zone' }] },
    }
    const { status, body } = await api.call('POST', path, aGroup(wanted))
    assert.equal(status, 201)
    assert.equal(body.spec.schedulingConstraints, undefined)
  })
})
