import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aConfigMap, aPod, configMapsPath, podsPath, TestServer } from './api-server.test-support.ts'

const nodePatch = { spec: { nodeName: 'n1' } }

async function withPod(name: string, labels = {}): Promise<TestServer> {
  const api = new TestServer()
  assert.equal((await api.call('POST', podsPath, aPod(name, labels))).status, 201)
  return api
}

async function bind(api: TestServer, name: string, node = 'n1') {
  return api.call('POST', `${podsPath}/${name}/binding`, {
    apiVersion: 'v1',
    kind: 'Binding',
    metadata: { name },
    target: { kind: 'Node', name: node },
  })
}

test('creating fills in what the server owns and refuses a second object of that name', async () => {
  const api = new TestServer()
  const { body } = await api.call('POST', podsPath, aPod('p'))
  assert.match(body.metadata.uid, /^[0-9a-f-]{36}$/)
  assert.equal(body.metadata.generation, 1)
  assert.equal(body.metadata.creationTimestamp, '2026-01-01T00:00:00Z')
  assert.equal(body.spec.priority, 0)
  assert.equal(body.spec.serviceAccountName, 'default')
  assert.equal(body.spec.tolerations.length, 2)
  assert.equal(body.status.phase, 'Pending')
  const again = await api.call('POST', podsPath, aPod('p'))
  assert.equal(again.status, 409)
  assert.equal(again.body.reason, 'AlreadyExists')
  assert.equal(again.body.message, 'pods "p" already exists')
})

test('RPT section 4: selectors of a pod name what matchLabelKeys take from its labels once it is created', async () => {
  const api = new TestServer()
  const pod = aPod('p', { app: 'web', revision: '1' })
  const rule = { topologyKey: 'zone', labelSelector: { matchLabels: { app: 'web' } } }
  const keys = { matchLabelKeys: ['revision', 'absent'], mismatchLabelKeys: ['app'] }
  const spec = {
    ...pod.spec,
    affinity: {
      podAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 1, podAffinityTerm: { ...rule, mismatchLabelKeys: ['app'] } },
        ],
      },
      podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ ...rule, ...keys }] },
    },
    topologySpreadConstraints: [
      { ...rule, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule', matchLabelKeys: ['revision'] },
    ],
  }
  const { status, body } = await api.call('POST', podsPath, { ...pod, spec })
  assert.equal(status, 201)
  const revision = { key: 'revision', operator: 'In', values: ['1'] }
  const otherApp = { key: 'app', operator: 'NotIn', values: ['web'] }
  const { podAffinity, podAntiAffinity } = body.spec.affinity
  const [preferred] = podAffinity.preferredDuringSchedulingIgnoredDuringExecution
  const [required] = podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution
  assert.deepEqual(preferred.podAffinityTerm.labelSelector.matchExpressions, [otherApp])
  assert.deepEqual(required.labelSelector.matchExpressions, [revision, otherApp])
  assert.deepEqual(body.spec.topologySpreadConstraints[0].labelSelector.matchExpressions, [revision])
})

test('generateName makes different names; a missing name is refused', async () => {
  const api = new TestServer()
  const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { generateName: 'x-' } }
  const first = await api.call('POST', configMapsPath, body)
  const second = await api.call('POST', configMapsPath, body)
  assert.match(first.body.metadata.name, /^x-[a-z0-9]{5}$/)
  assert.notEqual(first.body.metadata.name, second.body.metadata.name)
  const nameless = await api.call('POST', configMapsPath, { ...body, metadata: {} })
  assert.equal(nameless.status, 422)
  assert.equal(nameless.body.details.causes[0].field, 'metadata.name')
})

test('bad names are refused with the words clients know', async () => {
  const api = new TestServer()
  const { status, body } = await api.call('POST', configMapsPath, aConfigMap('Bad_Name'))
  assert.equal(status, 422)
  assert.equal(body.reason, 'Invalid')
  assert.match(body.message, /^ConfigMap "Bad_Name" is invalid: metadata.name: Invalid value: "Bad_Name": /)
})

test('nothing is created in a namespace that is missing or being deleted', async () => {
  const api = new TestServer()
  const missing = await api.call('POST', '/api/v1/namespaces/nope/configmaps', aConfigMap('a'))
  assert.equal(missing.status, 404)
  assert.equal(missing.body.message, 'namespaces "nope" not found')
  await api.call('POST', '/api/v1/namespaces', {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: { name: 'x' },
  })
  const deleted = await api.call('DELETE', '/api/v1/namespaces/x')
  assert.equal(deleted.body.status.phase, 'Terminating')
  const refused = await api.call('POST', '/api/v1/namespaces/x/configmaps', aConfigMap('a'))
  assert.equal(refused.status, 403)
  assert.equal(refused.body.details.causes[0].reason, 'NamespaceTerminating')
  const namespace = (await api.call('GET', '/api/v1/namespaces/x')).body
  await api.call('PUT', '/api/v1/namespaces/x/finalize', { ...namespace, spec: {} })
  assert.equal((await api.call('GET', '/api/v1/namespaces/x')).status, 404)
})

test('an outdated update is a conflict; an update that changes nothing keeps the revision', async () => {
  const api = new TestServer()
  const { body: first } = await api.call('POST', configMapsPath, aConfigMap('a', { k: '1' }))
  const { body: second } = await api.call('PUT', `${configMapsPath}/a`, { ...first, data: { k: '2' } })
  assert.notEqual(second.metadata.resourceVersion, first.metadata.resourceVersion)
  const stale = await api.call('PUT', `${configMapsPath}/a`, { ...first, data: { k: '3' } })
  assert.equal(stale.status, 409)
  assert.equal(stale.body.reason, 'Conflict')
  const same = await api.call('PUT', `${configMapsPath}/a`, second)
  assert.equal(same.body.metadata.resourceVersion, second.metadata.resourceVersion)
})

test('spec and status are written apart, and only spec changes the generation', async () => {
  const api = await withPod('p')
  const main = await api.merge(`${podsPath}/p`, {
    status: { phase: 'Running' },
    metadata: { labels: { a: 'b' } },
  })
  assert.equal(main.body.status.phase, 'Pending')
  assert.equal(main.body.metadata.generation, 1)
  const status = await api.merge(`${podsPath}/p/status`, { status: { phase: 'Running' }, ...nodePatch })
  assert.equal(status.body.status.phase, 'Running')
  assert.equal(status.body.spec.nodeName, undefined)
  assert.equal(status.body.metadata.generation, 1)
})

test('dry runs answer the outcome and leave everything as it was', async () => {
  const api = new TestServer()
  const { revision } = api.server.store
  const { status, body } = await api.call('POST', `${configMapsPath}?dryRun=All`, aConfigMap('a'))
  assert.equal(status, 201)
  assert.ok(body.metadata.uid)
  assert.equal(api.server.store.revision, revision)
})

test('unknown fields are refused, warned about or ignored as asked', async () => {
  const api = new TestServer()
  const odd = { ...aConfigMap('a'), bogus: 1 }
  const strict = await api.call('POST', `${configMapsPath}?fieldValidation=Strict`, odd)
  assert.equal(strict.status, 400)
  assert.match(strict.body.message, /strict decoding error: unknown field "bogus"/)
  const warned = await api.call('POST', configMapsPath, odd)
  assert.equal(warned.headers['warning'], '299 - "unknown field \\"bogus\\""')
  const ignored = await api.call('POST', `${configMapsPath}?fieldValidation=Ignore`, {
    ...odd,
    metadata: { name: 'b' },
  })
  assert.equal(ignored.headers['warning'], undefined)
})

test('a pod on a node gets its grace period; the kubelet ends it with grace 0', async () => {
  const api = await withPod('p')
  assert.equal((await bind(api, 'p')).status, 201)
  assert.equal((await bind(api, 'p', 'n2')).status, 409)
  const { body } = await api.call('DELETE', `${podsPath}/p`)
  assert.equal(body.metadata.deletionGracePeriodSeconds, 30)
  assert.equal(body.metadata.deletionTimestamp, '2026-01-01T00:00:30Z')
  assert.equal(body.metadata.generation, 2)
  const shorter = await api.call('DELETE', `${podsPath}/p?gracePeriodSeconds=5`)
  assert.equal(shorter.body.metadata.deletionTimestamp, '2026-01-01T00:00:05Z')
  await api.call('DELETE', `${podsPath}/p`, { gracePeriodSeconds: 0 })
  assert.equal((await api.call('GET', `${podsPath}/p`)).status, 404)
})

test('a pod without a node is gone at once', async () => {
  const api = await withPod('p')
  await api.call('DELETE', `${podsPath}/p`)
  assert.equal((await api.call('GET', `${podsPath}/p`)).status, 404)
})

test('finalizers hold a deletion until the last one goes', async () => {
  const api = new TestServer()
  const held = { ...aConfigMap('a'), metadata: { name: 'a', finalizers: ['example.com/hold'] } }
  await api.call('POST', configMapsPath, held)
  const { body } = await api.call('DELETE', `${configMapsPath}/a`)
  assert.equal(body.kind, 'ConfigMap')
  assert.ok(body.metadata.deletionTimestamp)
  const added = await api.merge(`${configMapsPath}/a`, {
    metadata: { finalizers: ['example.com/hold', 'example.com/b'] },
  })
  assert.equal(added.status, 422)
  await api.merge(`${configMapsPath}/a`, { metadata: { finalizers: null } })
  assert.equal((await api.call('GET', `${configMapsPath}/a`)).status, 404)
})

test('propagation policies leave their finalizers for the garbage collector', async () => {
  const api = new TestServer()
  for (const [policy, finalizer] of [
    ['Foreground', 'foregroundDeletion'],
    ['Orphan', 'orphan'],
  ] as const) {
    await api.call('POST', configMapsPath, aConfigMap(policy.toLowerCase()))
    const { body } = await api.call('DELETE', `${configMapsPath}/${policy.toLowerCase()}`, {
      propagationPolicy: policy,
    })
    assert.deepEqual(body.metadata.finalizers, [finalizer])
  }
})

test('preconditions must hold for a deletion', async () => {
  const api = new TestServer()
  const { body } = await api.call('POST', configMapsPath, aConfigMap('a'))
  const refused = await api.call('DELETE', `${configMapsPath}/a`, { preconditions: { uid: 'other' } })
  assert.equal(refused.status, 409)
  const done = await api.call('DELETE', `${configMapsPath}/a`, { preconditions: { uid: body.metadata.uid } })
  assert.deepEqual(done.body.details, { name: 'a', kind: 'configmaps', uid: body.metadata.uid })
})

test('ASK-29 a resize changes the resources of containers, and nothing else', async () => {
  const api = await withPod('p')
  await bind(api, 'p')
  const send = (containers: readonly object[], more: object = {}) =>
    api.call(
      'PATCH',
      `${podsPath}/p/resize`,
      { spec: { containers, ...more } },
      { contentType: 'application/strategic-merge-patch+json' },
    )
  const name: unknown = (await api.call('GET', `${podsPath}/p`)).body.spec.containers[0].name
  const larger = await send([{ name, resources: { requests: { cpu: '3' } } }])
  assert.equal(larger.status, 200, larger.body.message)
  const { metadata, spec } = (await api.call('GET', `${podsPath}/p`)).body
  assert.equal(spec.containers[0].resources.requests.cpu, '3')
  assert.equal(spec.nodeName, 'n1')
  assert.equal(metadata.generation, 2)
  for (const [containers, more] of [
    [[{ name, workingDir: '/' }], {}],
    [[{ name, image: 'other' }], {}],
    [[{ name: 'another', image: 'x' }], {}],
    [[], { hostNetwork: true }],
  ] as const)
    assert.equal((await send(containers, more)).status, 422)
  const wrong = await send([{ name, resources: { requests: { cpu: '-1' } } }])
  assert.ok([400, 422].includes(wrong.status))
  const containers = [{ name, image: 'other', resources: { requests: { cpu: '2' } } }]
  const usual = await api.merge(`${podsPath}/p`, { spec: { containers } })
  assert.equal(usual.status, 422, 'outside of a resize they stay as they are')
})

test('an eviction takes from the budget, and is refused when it is used up', async () => {
  const api = await withPod('one', { app: 'a' })
  await api.call('POST', podsPath, aPod('two', { app: 'a' }))
  for (const name of ['one', 'two']) {
    await bind(api, name)
    await api.merge(`${podsPath}/${name}/status`, {
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    })
  }
  const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'
  await api.call('POST', budgets, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name: 'b' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'a' } } },
  })
  const counts = {
    observedGeneration: 1,
    disruptionsAllowed: 1,
    currentHealthy: 2,
    desiredHealthy: 1,
    expectedPods: 2,
  }
  await api.merge(`${budgets}/b/status`, { status: counts })
  const evict = (name: string) =>
    api.call('POST', `${podsPath}/${name}/eviction`, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name },
    })
  assert.equal((await evict('one')).status, 201)
  const budget = (await api.call('GET', `${budgets}/b`)).body
  assert.equal(budget.status.disruptionsAllowed, 0)
  assert.ok(budget.status.disruptedPods.one)
  const refused = await evict('two')
  assert.equal(refused.status, 429)
  assert.equal(refused.body.reason, 'TooManyRequests')
  assert.equal(refused.body.message, "Cannot evict pod as it would violate the pod's disruption budget.")
  assert.equal(refused.body.details.causes[0].reason, 'DisruptionBudget')
})

test('an eviction gives the pod as long as it says', async () => {
  const api = new TestServer()
  await api.call('POST', podsPath, aPod('p'))
  await api.call('POST', `${podsPath}/p/binding`, { metadata: { name: 'p' }, target: { name: 'n' } })
  const { status } = await api.call('POST', `${podsPath}/p/eviction`, {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name: 'p' },
    deleteOptions: { gracePeriodSeconds: 7 },
  })
  const { metadata } = (await api.call('GET', `${podsPath}/p`)).body
  assert.deepEqual([status, metadata.deletionGracePeriodSeconds], [201, 7])
})

test('the scale of a Deployment is read and written', async () => {
  const api = new TestServer()
  const path = '/apis/apps/v1/namespaces/default/deployments'
  const template = { metadata: { labels: { app: 'a' } }, spec: aPod('x').spec }
  await api.call('POST', path, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'd' },
    spec: { replicas: 1, selector: { matchLabels: { app: 'a' } }, template },
  })
  const { body } = await api.call('GET', `${path}/d/scale`)
  assert.equal(body.spec.replicas, 1)
  assert.equal(body.status.selector, 'app=a')
  await api.call('PUT', `${path}/d/scale`, { ...body, spec: { replicas: 3 } })
  const scaled = (await api.call('GET', `${path}/d`)).body
  assert.equal(scaled.spec.replicas, 3)
  assert.equal(scaled.metadata.generation, 2)
})

test('custom resources are served, with their versions, until their definition goes', async () => {
  const api = new TestServer()
  const schema = {
    openAPIV3Schema: {
      type: 'object',
      properties: { spec: { type: 'object', properties: { size: { type: 'integer', default: 1 } } } },
    },
  }
  const crds = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
  const created = await api.call('POST', crds, {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'things.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural: 'things', singular: 'thing', kind: 'Thing', listKind: 'ThingList' },
      versions: [
        { name: 'v1', served: true, storage: true, schema },
        { name: 'v1beta1', served: true, storage: false, schema },
      ],
    },
  })
  assert.equal(created.status, 201, JSON.stringify(created.body))
  assert.deepEqual(
    created.body.status.conditions.map((condition: { type: string }) => condition.type),
    ['NamesAccepted', 'Established'],
  )
  const things = '/apis/example.com/v1beta1/namespaces/default/things'
  const thing = {
    apiVersion: 'example.com/v1beta1',
    kind: 'Thing',
    metadata: { name: 't', finalizers: ['a.b/c'] },
    spec: {},
  }
  const { body } = await api.call('POST', things, thing)
  assert.equal(body.spec.size, 1)
  const v1 = things.replace('v1beta1', 'v1')
  assert.equal((await api.call('GET', `${v1}/t`)).body.apiVersion, 'example.com/v1')
  const unconditional = { ...thing, apiVersion: 'example.com/v1' }
  assert.equal((await api.call('PUT', `${v1}/t`, unconditional)).status, 422)
  await api.call('DELETE', `${crds}/things.example.com`)
  assert.equal((await api.call('POST', v1, { ...unconditional, metadata: { name: 'u' } })).status, 405)
  await api.merge(`${v1}/t`, { metadata: { finalizers: null } })
  assert.equal((await api.call('GET', v1)).status, 404)
  assert.equal((await api.call('GET', `${crds}/things.example.com`)).status, 404)
})

test('events are the same objects in both of their groups', async () => {
  const api = new TestServer()
  await api.call('POST', '/api/v1/namespaces/default/events', {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'e' },
    involvedObject: { kind: 'Pod', name: 'p', namespace: 'default' },
    reason: 'Because',
    message: 'words',
    type: 'Normal',
  })
  const { body } = await api.call('GET', '/apis/events.k8s.io/v1/namespaces/default/events/e')
  assert.equal(body.note, 'words')
  assert.equal(body.regarding.name, 'p')
  await api.clock.advance(62 * 60_000)
  assert.equal((await api.call('GET', '/api/v1/namespaces/default/events/e')).status, 404)
})

test('a server that records no owners stores objects without managedFields, whoever writes', async () => {
  const api = new TestServer(undefined, { recordsOwners: false })
  const created = await api.call('POST', configMapsPath, aConfigMap('a'))
  assert.equal(created.body.metadata.managedFields, undefined)
  const patched = await api.merge(`${configMapsPath}/a`, { data: { more: 'x' } })
  assert.equal(patched.body.data.more, 'x')
  assert.equal(patched.body.metadata.managedFields, undefined)
})

test('an update that shares most with what is stored still loses unknown fields and nulls', async () => {
  const api = await withPod('p', { app: 'a' })
  const path = `${podsPath}/p`
  const { body } = await api.merge(path, {
    metadata: { labels: { more: 'x' } },
    spec: { nonsense: { deep: true }, activeDeadlineSeconds: 60 },
  })
  assert.equal(body.spec.nonsense, undefined)
  assert.equal(body.spec.activeDeadlineSeconds, 60)
  assert.deepEqual(body.metadata.labels, { app: 'a', more: 'x' })
  const status = await api.merge(`${path}/status`, { status: { message: 'm', junk: 1, hostIP: null } })
  assert.equal(status.body.status.message, 'm')
  assert.equal('junk' in status.body.status, false)
  assert.deepEqual(status.body.spec, body.spec)
  const bad = await api.merge(path, { metadata: { labels: { 'no good': 'x' } } })
  assert.equal(bad.status, 422)
})

test('PGE-17 a pod of a ServiceAccount that does not exist is refused as kube-apiserver does', async () => {
  const api = new TestServer()
  const pod = { ...aPod('p'), spec: { ...aPod('p').spec, serviceAccountName: 'robot' } }
  const { status, body } = await api.call('POST', podsPath, pod)
  assert.deepEqual(
    [status, body.reason, body.message],
    [
      403,
      'Forbidden',
      'pods "p" is forbidden: error looking up service account default/robot: serviceaccount "robot" not found',
    ],
  )
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot' } }
  assert.equal((await api.call('POST', '/api/v1/namespaces/default/serviceaccounts', account)).status, 201)
  assert.equal((await api.call('POST', podsPath, pod)).status, 201)
})

test('huge pages come in whole pages, and a webhook without the name of its service hears of the namespace', async () => {
  const api = new TestServer()
  const pod = (pages: string) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'huge' },
    spec: {
      containers: [{ name: 'main', image: 'a', resources: { limits: { cpu: '1', 'hugepages-2Mi': pages } } }],
    },
  })
  const refused = await api.call('POST', '/api/v1/namespaces/default/pods', pod('3Mi'))
  assert.equal(refused.status, 422)
  assert.match(
    refused.body.message,
    /containers\[0\]\.resources\.limits\[hugepages-2Mi\]: Invalid value: "3Mi": 3Mi is not positive integer multiple of hugepages-2Mi/,
  )
  assert.equal((await api.call('POST', '/api/v1/namespaces/default/pods', pod('4Mi'))).status, 201)
  const hook = await api.call(
    'POST',
    '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations',
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'guard' },
      webhooks: [
        {
          name: 'guard.example.com',
          clientConfig: { service: { namespace: 'default' } },
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
        },
      ],
    },
  )
  assert.match(
    hook.body.message,
    /is invalid: webhooks\[0\]\.clientConfig\.service\.namespace: Required value: service namespace is required$/,
  )
})
