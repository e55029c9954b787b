import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Answer, aPod, podsPath, TestServer } from '../../api-server.test-support.ts'

const prefix = 'pod-security.kubernetes.io/'
const namespacePath = '/api/v1/namespaces/default'

/** An API server whose namespace `default` has these labels. */
async function labelled(labels: Readonly<Record<string, string>>): Promise<TestServer> {
  const api = new TestServer()
  assert.equal((await relabel(api, labels)).status, 200)
  return api
}

function relabel(api: TestServer, labels: Readonly<Record<string, string | null>>): Promise<Answer> {
  const prefixed = Object.entries(labels).map(([key, value]) => [`${prefix}${key}`, value])
  return api.merge(namespacePath, { metadata: { labels: Object.fromEntries(prefixed) } })
}

function podWith(name: string, spec: object, context: object = {}) {
  const containers = [{ name: 'app', image: 'app:1', securityContext: context }]
  return { ...aPod(name), spec: { containers, ...spec } }
}

const restrictedContext = {
  allowPrivilegeEscalation: false,
  capabilities: { drop: ['ALL'] },
  runAsNonRoot: true,
  seccompProfile: { type: 'RuntimeDefault' },
}

const plainViolations =
  'allowPrivilegeEscalation != false (container "app" must set securityContext.allowPrivilegeEscalation=false), ' +
  'unrestricted capabilities (container "app" must set securityContext.capabilities.drop=["ALL"]), ' +
  'runAsNonRoot != true (pod or container "app" must set securityContext.runAsNonRoot=true), ' +
  'seccompProfile (pod or container "app" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'

const warnings = ({ headers }: Answer): string => (headers['warning'] ?? '').replaceAll('\\"', '"')

describe('PGE-16 pod security', () => {
  test('a pod that violates the enforced level is refused, with every reason', async () => {
    const api = await labelled({ enforce: 'restricted' })
    const { status, body } = await api.call('POST', podsPath, aPod('p'))
    assert.equal(status, 403)
    assert.equal(
      body.message,
      `pods "p" is forbidden: violates PodSecurity "restricted:latest": ${plainViolations}`,
    )
    assert.deepEqual(body.details, { name: 'p', kind: 'pods' })
    const good = await api.call('POST', podsPath, podWith('q', {}, restrictedContext))
    assert.deepEqual([good.status, warnings(good)], [201, ''])
  })

  test('parts of the cluster that create pods are refused as users are', async () => {
    const api = await labelled({ enforce: 'baseline' })
    const type = { group: '', version: 'v1', kind: 'Pod', plural: 'pods', namespaced: true }
    const pod = podWith('p', { hostNetwork: true })
    const created = () =>
      api.server.local.create(type, { ...pod, metadata: { name: 'p', namespace: 'default' } })
    assert.throws(created, /violates PodSecurity "baseline:latest": host namespaces \(hostNetwork=true\)$/)
  })

  test('pods of which only facts are known are not judged', async () => {
    const api = new TestServer(undefined, { checksPods: false })
    await relabel(api, { enforce: 'restricted' })
    const answer = await api.call('POST', podsPath, podWith('p', { hostNetwork: true }))
    assert.deepEqual([answer.status, warnings(answer)], [201, ''])
  })

  test('the version of a level decides which controls it has', async () => {
    const api = await labelled({ enforce: 'restricted', 'enforce-version': 'v1.7' })
    const { body } = await api.call('POST', podsPath, aPod('p'))
    const reason = 'runAsNonRoot != true (pod or container "app" must set securityContext.runAsNonRoot=true)'
    assert.equal(body.message, `pods "p" is forbidden: violates PodSecurity "restricted:v1.7": ${reason}`)
    const ownUsers = podWith('own', { hostUsers: false }, { ...restrictedContext, runAsUser: 0 })
    for (const [version, status] of [
      ['v1.22', 201],
      ['v1.34', 403],
      ['v1.35', 201],
      ['v1.9223372036854775807', 201],
    ] as const) {
      await relabel(api, { 'enforce-version': version })
      assert.equal((await api.call('POST', `${podsPath}?dryRun=All`, ownUsers)).status, status, version)
    }
  })

  test('pods for Windows need not set what only Linux knows', async () => {
    const api = await labelled({ enforce: 'restricted' })
    const pod = podWith('p', { os: { name: 'windows' } }, { runAsNonRoot: true })
    assert.equal((await api.call('POST', podsPath, pod)).status, 201)
    const spec = {
      os: { name: 'windows' },
      hostNetwork: true,
      securityContext: { windowsOptions: { hostProcess: true } },
    }
    const { body } = await api.call('POST', podsPath, podWith('q', spec, { runAsNonRoot: true }))
    assert.match(
      body.message,
      /: host namespaces \(hostNetwork=true\), hostProcess \(pod must not set securityContext.windowsOptions.hostProcess=true\)$/,
    )
  })

  test('what is only warned of is accepted', async () => {
    const api = await labelled({ enforce: 'baseline', warn: 'restricted', audit: 'restricted' })
    const pod = await api.call('POST', podsPath, aPod('p'))
    assert.equal(pod.status, 201)
    assert.equal(warnings(pod), `299 - "would violate PodSecurity "restricted:latest": ${plainViolations}"`)
    const refused = await api.call('POST', podsPath, podWith('q', { hostPID: true }))
    assert.deepEqual([refused.status, warnings(refused)], [403, ''], 'a refusal says enough')
  })

  test('workloads are warned of at the level that refuses their pods', async () => {
    const api = await labelled({ enforce: 'restricted', 'enforce-version': 'v1.7' })
    const template = { spec: { ...aPod('x').spec, restartPolicy: 'Never' } }
    const job = { apiVersion: 'batch/v1', kind: 'Job', metadata: { name: 'work' }, spec: { template } }
    const created = await api.call('POST', '/apis/batch/v1/namespaces/default/jobs', job)
    assert.equal(created.status, 201)
    assert.match(
      warnings(created),
      /^299 - "would violate PodSecurity "restricted:v1.7": runAsNonRoot != true /,
    )
  })

  test('a change of labels names the pods that the new level would refuse', async () => {
    const api = new TestServer()
    for (const name of ['b', 'a', 'c']) await api.call('POST', podsPath, podWith(name, { hostNetwork: true }))
    await api.call('POST', podsPath, podWith('d', {}, { privileged: true }))
    const changed = await relabel(api, { enforce: 'baseline' })
    assert.equal(
      warnings(changed),
      '299 - "existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"", ' +
        '299 - "a (and 2 other pods): host namespaces", 299 - "d: privileged"',
    )
    assert.equal(warnings(await relabel(api, { warn: 'restricted' })), '', 'only the enforced level refuses')
    assert.equal(warnings(await relabel(api, { enforce: 'privileged' })), '')
  })

  test('an update is judged if it changes an image or adds an ephemeral container', async () => {
    const api = new TestServer()
    await api.call('POST', podsPath, aPod('p'))
    await relabel(api, { enforce: 'restricted' })
    const path = `${podsPath}/p`
    assert.equal((await api.merge(path, { metadata: { labels: { more: 'x' } } })).status, 200)
    const image = [{ op: 'replace', path: '/spec/containers/0/image', value: 'app:2' }]
    const contentType = 'application/json-patch+json'
    assert.equal((await api.call('PATCH', path, image, { contentType })).status, 403)
    const debug = { spec: { ephemeralContainers: [{ name: 'debug', image: 'busybox' }] } }
    const { status, body } = await api.merge(`${path}/ephemeralcontainers`, debug)
    assert.equal(status, 403)
    assert.match(
      body.message,
      /containers "app", "debug" must set securityContext.allowPrivilegeEscalation=false/,
    )
  })

  test('labels that are not valid are refused, those of an old data directory only when they change', async () => {
    const api = new TestServer()
    const refused = await relabel(api, { enforce: 'strict', 'warn-version': '1.25' })
    assert.equal(refused.status, 422)
    assert.equal(
      refused.body.message,
      'Namespace "default" is invalid: [metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": ' +
        'must be one of privileged, baseline, restricted, metadata.labels[pod-security.kubernetes.io/warn-version]: ' +
        'Invalid value: "1.25": must be "latest" or "v1.x"]',
    )
    const namespaces = api.server.store.collection('namespaces')
    const stored = namespaces.get('\u0000default')
    assert.ok(stored !== undefined)
    const labels = { [`${prefix}enforce`]: 'strict', [`${prefix}warn`]: 'strict' }
    api.server.store.put(namespaces, '\u0000default', { ...stored, metadata: { ...stored.metadata, labels } })
    assert.equal((await relabel(api, { other: 'x' })).status, 200)
    const { status, body } = await api.call('POST', podsPath, aPod('p'))
    assert.equal(status, 403)
    assert.match(body.message, /violates PodSecurity "restricted:latest"/)
  })

  test('warnings fit into headers, whatever values a pod has', async () => {
    const api = await labelled({ warn: 'baseline' })
    const warned = async (capability: string, volumes: readonly object[] = []) => {
      const pod = podWith('p', { volumes }, { capabilities: { add: [capability] } })
      return warnings(await api.call('POST', `${podsPath}?dryRun=All`, pod))
    }
    assert.equal(await warned('a\nb'), '', 'kube-apiserver does not give a warning with control characters')
    assert.match(Buffer.from(await warned('ü😀'), 'latin1').toString('utf8'), /must not include "ü😀" in/)
    assert.equal((await warned('x'.repeat(10_000))).length, '299 - ""'.length + 256)
    const deprecated = Array.from({ length: 90 }, (_, index) => ({
      name: `v${index}`,
      gitRepo: { repository: 'x' },
    }))
    assert.equal((await warned('SYS_TIME', deprecated)).split(', 299 - ').length, 52)
  })

  test('hostile names and values are no reason to fail', async () => {
    const api = await labelled({ enforce: 'restricted', warn: 'baseline' })
    const key = 'container.apparmor.security.beta.kubernetes.io/app'
    for (const [annotations, context] of [
      [{ [key]: '' }, {}],
      [{ [key]: 'unconfined', constructor: 'x' }, {}],
      [{}, { capabilities: null, seLinuxOptions: {} }],
    ]) {
      const pod = podWith('p', { volumes: null, initContainers: null, securityContext: null }, context)
      const answer = await api.call('POST', podsPath, { ...pod, metadata: { name: 'p', annotations } })
      assert.equal(answer.status, 403, JSON.stringify(annotations))
    }
  })
})
