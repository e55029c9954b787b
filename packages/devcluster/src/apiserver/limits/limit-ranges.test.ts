import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Answer, podsPath, TestServer } from '../api-server.test-support.ts'

const claimsPath = '/api/v1/namespaces/default/persistentvolumeclaims'

async function aServer(...limits: readonly object[]): Promise<TestServer> {
  const server = new TestServer()
  const answer = await server.call('POST', '/api/v1/namespaces/default/limitranges', {
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'bounds' },
    spec: { limits },
  })
  assert.equal(answer.status, 201, answer.body.message)
  return server
}

function create(server: TestServer, resources: object, more: object = {}): Promise<Answer> {
  return server.call('POST', podsPath, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'web' },
    spec: { containers: [{ name: 'app', image: 'app:1', resources }], ...more },
  })
}

describe('defaults', () => {
  test('RPT-59 containers get the requests and limits they do not state', async () => {
    const server = await aServer({
      type: 'Container',
      default: { cpu: '500m', memory: '512Mi' },
      defaultRequest: { cpu: '250m', memory: '256Mi' },
    })
    const { body } = await create(
      server,
      { requests: { memory: '300Mi' } },
      { initContainers: [{ name: 'setup', image: 'app:1' }] },
    )
    const [app] = body.spec.containers
    assert.deepEqual(app.resources, {
      requests: { cpu: '250m', memory: '300Mi' },
      limits: { cpu: '500m', memory: '512Mi' },
    })
    assert.deepEqual(body.spec.initContainers[0].resources.requests, { cpu: '250m', memory: '256Mi' })
    assert.equal(
      body.metadata.annotations['kubernetes.io/limit-ranger'],
      'LimitRanger plugin set: cpu request for container app; cpu, memory limit for container app; ' +
        'cpu, memory request for init container setup; cpu, memory limit for init container setup',
    )
  })

  test('RPT-59 a limit alone is the request too, and the default of it is left alone', async () => {
    const server = await aServer({
      type: 'Container',
      default: { cpu: '1' },
      defaultRequest: { cpu: '100m' },
    })
    const { body } = await create(server, { limits: { cpu: '2' } })
    assert.deepEqual(body.spec.containers[0].resources, { limits: { cpu: '2' }, requests: { cpu: '2' } })
  })

  test('RPT-59 a default limit below the stated request makes the pod invalid', async () => {
    const server = await aServer({ type: 'Container', default: { cpu: '500m' } })
    const { status, body } = await create(server, { requests: { cpu: '700m' } })
    assert.equal(status, 422)
    assert.match(body.message, /must be less than or equal to cpu limit/)
  })
})

describe('bounds, in the words of Kubernetes', () => {
  const refusals: readonly [string, object, object, string][] = [
    [
      'less than the least',
      { type: 'Container', min: { cpu: '100m' } },
      { requests: { cpu: '50m' }, limits: { cpu: '200m' } },
      'minimum cpu usage per Container is 100m, but request is 50m',
    ],
    [
      'more than the most',
      { type: 'Container', max: { memory: '1Gi' }, default: { memory: '1Gi' } },
      { limits: { memory: '2Gi' } },
      'maximum memory usage per Container is 1Gi, but limit is 2Gi',
    ],
    [
      'a whole pod without a limit',
      { type: 'Pod', max: { cpu: '2' } },
      { requests: { cpu: '1' } },
      'maximum cpu usage per Pod is 2.  No limit is specified',
    ],
    [
      'a limit far above the request',
      { type: 'Container', maxLimitRequestRatio: { cpu: '2' } },
      { requests: { cpu: '100m' }, limits: { cpu: '500m' } },
      'cpu max limit to request ratio per Container is 2, but provided ratio is 5.000000',
    ],
    [
      'two at once',
      { type: 'Container', min: { cpu: '100m', memory: '64Mi' } },
      { requests: { cpu: '50m', memory: '32Mi' } },
      '[minimum cpu usage per Container is 100m, but request is 50m, minimum memory usage per Container is 64Mi, but request is 32Mi]',
    ],
  ]
  for (const [name, limit, resources, why] of refusals) {
    test(`RPT-59 ${name}`, async () => {
      const server = await aServer(limit)
      const { status, body } = await create(server, resources)
      assert.deepEqual(
        [status, body.reason, body.message],
        [403, 'Forbidden', `pods "web" is forbidden: ${why}`],
      )
    })
  }

  test('RPT-59 the containers of a pod count together, init containers with the sidecars before them', async () => {
    const server = await aServer({ type: 'Pod', max: { cpu: '2' } })
    const cpu = (amount: string) => ({ resources: { limits: { cpu: amount } }, image: 'app:1' })
    const sidecar = { name: 'proxy', restartPolicy: 'Always', ...cpu('500m') }
    const setup = { name: 'setup', ...cpu('1600m') }
    const { body } = await create(server, { limits: { cpu: '1' } }, { initContainers: [sidecar, setup] })
    assert.equal(body.message, 'pods "web" is forbidden: maximum cpu usage per Pod is 2, but limit is 2100m')
    const fits = await create(server, { limits: { cpu: '1' } }, { initContainers: [setup, sidecar] })
    assert.equal(fits.status, 201, fits.body.message)
  })

  test('RPT-59 claims are bounded when they are made and when they grow', async () => {
    const server = await aServer({
      type: 'PersistentVolumeClaim',
      min: { storage: '1Gi' },
      max: { storage: '5Gi' },
    })
    const claim = (storage: string) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
    })
    const small = await server.call('POST', claimsPath, claim('500Mi'))
    assert.match(
      small.body.message,
      /minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 500Mi/,
    )
    assert.equal((await server.call('POST', claimsPath, claim('2Gi'))).status, 201)
    const grown = await server.merge(`${claimsPath}/data`, {
      spec: { resources: { requests: { storage: '6Gi' } } },
    })
    assert.equal(grown.status, 403)
    assert.match(
      grown.body.message,
      /maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 6Gi/,
    )
  })

  test('RPT-59 other namespaces are not bounded', async () => {
    const server = await aServer({ type: 'Container', max: { cpu: '1' } })
    const { status } = await server.call('POST', '/api/v1/namespaces/kube-system/pods', {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web' },
      spec: { containers: [{ name: 'app', image: 'app:1', resources: { limits: { cpu: '9' } } }] },
    })
    assert.equal(status, 201)
  })
})

test('RPT-59 a LimitRange whose own figures contradict each other is refused', async () => {
  const server = new TestServer()
  const { status, body } = await server.call('POST', '/api/v1/namespaces/default/limitranges', {
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'bounds' },
    spec: { limits: [{ type: 'Container', min: { cpu: '2' }, max: { cpu: '1' } }] },
  })
  assert.equal(status, 422)
  assert.match(
    body.message,
    /spec.limits\[0\].min\[cpu\]: Invalid value: "2": min value 2 is greater than max value 1/,
  )
})
