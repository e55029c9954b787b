import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aConfigMap, configMapsPath, TestServer } from '../api-server.test-support.ts'

const root = '/apis/admissionregistration.k8s.io/v1'
const deploymentsPath = '/apis/apps/v1/namespaces/default/deployments'

function aDeployment(name: string, replicas: number, labels: Record<string, string> = {}) {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, labels },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: {
        metadata: { labels: { app: name } },
        spec: { containers: [{ name: 'main', image: 'app:1' }] },
      },
    },
  }
}

async function withPolicy(spec: object, binding: object, more: readonly object[] = []): Promise<TestServer> {
  const api = new TestServer()
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'few' },
    spec: {
      matchConstraints: {
        resourceRules: [
          {
            apiGroups: ['apps'],
            apiVersions: ['v1'],
            operations: ['CREATE', 'UPDATE'],
            resources: ['deployments'],
          },
        ],
      },
      validations: [{ expression: 'object.spec.replicas <= 5' }],
      ...spec,
    },
  }
  for (const object of more) {
    const created = await api.call('POST', configMapsPath, object)
    assert.equal(created.status, 201)
  }
  const created = await api.call('POST', `${root}/validatingadmissionpolicies`, policy)
  assert.equal(created.status, 201, created.body.message)
  const bound = await api.call('POST', `${root}/validatingadmissionpolicybindings`, {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicyBinding',
    metadata: { name: 'everywhere' },
    spec: { policyName: 'few', validationActions: ['Deny'], ...binding },
  })
  assert.equal(bound.status, 201, bound.body.message)
  return api
}

const denied =
  "deployments.apps \"big\" is forbidden: ValidatingAdmissionPolicy 'few' with binding 'everywhere' denied request: "

test('RPT-60 a bound policy denies creations, updates and applies, in the words of the real server', async () => {
  const api = await withPolicy({}, {})
  const refused = await api.call('POST', deploymentsPath, aDeployment('big', 6))
  assert.equal(refused.status, 422)
  assert.equal(refused.body.reason, 'Invalid')
  assert.equal(refused.body.message, `${denied}failed expression: object.spec.replicas <= 5`)
  assert.equal((await api.call('POST', deploymentsPath, aDeployment('small', 5))).status, 201)
  const grown = await api.merge(`${deploymentsPath}/small`, { spec: { replicas: 9 } })
  assert.equal(grown.status, 422)
  const apply = { contentType: 'application/apply-patch+yaml' }
  const path = `${deploymentsPath}/big?fieldManager=test&force=true`
  assert.equal((await api.call('PATCH', path, aDeployment('big', 7), apply)).status, 422)
  assert.equal((await api.call('PATCH', path, aDeployment('big', 1), apply)).status, 201)
  assert.equal((await api.call('POST', `${deploymentsPath}?dryRun=All`, aDeployment('dry', 6))).status, 422)
})

test('RPT-60 a binding may only warn, and one that audits lets through', async () => {
  const api = await withPolicy({}, { validationActions: ['Warn', 'Audit'] })
  const warned = await api.call('POST', deploymentsPath, aDeployment('big', 6))
  assert.equal(warned.status, 201)
  assert.match(
    warned.headers['warning'] ?? '',
    /Validation failed for ValidatingAdmissionPolicy 'few' with binding/,
  )
  const quiet = await withPolicy({}, { validationActions: ['Audit'] })
  const audited = await quiet.call('POST', deploymentsPath, aDeployment('big', 6))
  assert.deepEqual([audited.status, audited.headers['warning']], [201, undefined])
})

test('RPT-60 variables, message expressions, reasons and conditions count', async () => {
  const api = await withPolicy(
    {
      matchConditions: [
        {
          name: 'not-exempt',
          expression: "!has(object.metadata.labels) || !('exempt' in object.metadata.labels)",
        },
      ],
      variables: [
        { name: 'replicas', expression: 'object.spec.replicas' },
        { name: 'tooMany', expression: 'variables.replicas > 5' },
      ],
      validations: [
        {
          expression: '!variables.tooMany',
          messageExpression: "'at most 5, not ' + string(variables.replicas)",
          reason: 'Forbidden',
        },
      ],
    },
    {},
  )
  const refused = await api.call('POST', deploymentsPath, aDeployment('big', 6))
  assert.deepEqual([refused.status, refused.body.reason], [403, 'Forbidden'])
  assert.equal(refused.body.message, `${denied}at most 5, not 6`)
  assert.equal((await api.call('POST', deploymentsPath, aDeployment('free', 6, { exempt: '' }))).status, 201)
})

test('RPT-60 failurePolicy decides about expressions that fail when they run', async () => {
  const validations = [{ expression: "object.metadata.labels['owner'] == 'me'" }]
  const strict = await withPolicy({ validations }, {})
  const refused = await strict.call('POST', deploymentsPath, aDeployment('big', 1))
  assert.equal(refused.status, 422)
  assert.match(refused.body.message, /resulted in error/)
  const lenient = await withPolicy({ validations, failurePolicy: 'Ignore' }, {})
  assert.equal((await lenient.call('POST', deploymentsPath, aDeployment('big', 1))).status, 201)
})

test('RPT-60 parameters come from the objects that the binding names or selects', async () => {
  const limits = [
    aConfigMap('three', { max: '3' }, { limits: '' }),
    aConfigMap('two', { max: '2' }, { limits: '' }),
  ]
  const spec = {
    paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
    validations: [{ expression: 'object.spec.replicas <= int(params.data.max)' }],
  }
  const paramRef = { name: 'three', namespace: 'default', parameterNotFoundAction: 'Deny' }
  const named = await withPolicy(spec, { paramRef }, limits)
  assert.equal((await named.call('POST', deploymentsPath, aDeployment('big', 4))).status, 422)
  assert.equal((await named.call('POST', deploymentsPath, aDeployment('big', 3))).status, 201)
  const selector = { matchLabels: { limits: '' } }
  const all = await withPolicy(spec, { paramRef: { selector, parameterNotFoundAction: 'Deny' } }, limits)
  assert.equal((await all.call('POST', deploymentsPath, aDeployment('big', 3))).status, 422)
  const none = await withPolicy(spec, { paramRef: { ...paramRef, name: 'gone' } })
  assert.match(
    (await none.call('POST', deploymentsPath, aDeployment('big', 1))).body.message,
    /no params found for policy binding with `Deny` parameterNotFoundAction$/,
  )
  const allowed = await withPolicy(spec, {
    paramRef: { ...paramRef, name: 'gone', parameterNotFoundAction: 'Allow' },
  })
  assert.equal((await allowed.call('POST', deploymentsPath, aDeployment('big', 9))).status, 201)
})

test('RPT-60 a binding narrows a policy to namespaces and objects', async () => {
  const api = await withPolicy(
    {},
    { matchResources: { namespaceSelector: { matchLabels: { env: 'prod' } } } },
  )
  const prod = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'prod', labels: { env: 'prod' } } }
  await api.call('POST', '/api/v1/namespaces', prod)
  assert.equal((await api.call('POST', deploymentsPath, aDeployment('big', 6))).status, 201)
  const there = deploymentsPath.replace('default', 'prod')
  assert.equal((await api.call('POST', there, aDeployment('big', 6))).status, 422)
})

test('RPT-60 deletions and the user can be looked at', async () => {
  const api = await withPolicy(
    {
      matchConstraints: {
        resourceRules: [
          { apiGroups: ['apps'], apiVersions: ['*'], operations: ['DELETE'], resources: ['deployments'] },
        ],
      },
      validations: [
        { expression: "request.userInfo.username != 'kubernetes-admin' || oldObject.spec.replicas == 0" },
      ],
    },
    {},
  )
  await api.call('POST', deploymentsPath, aDeployment('big', 1))
  assert.equal((await api.call('DELETE', `${deploymentsPath}/big`)).status, 422)
  await api.merge(`${deploymentsPath}/big`, { spec: { replicas: 0 } })
  assert.equal((await api.call('DELETE', `${deploymentsPath}/big`)).status, 200)
})

test('RPT-60 an expression that does not compile is refused with its place', async () => {
  const api = new TestServer()
  const policy = {
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingAdmissionPolicy',
    metadata: { name: 'few' },
    spec: { matchConstraints: { resourceRules: [] }, validations: [{ expression: 'nobody.spec >' }] },
  }
  const { status, body } = await api.call('POST', `${root}/validatingadmissionpolicies`, policy)
  assert.equal(status, 422)
  assert.deepEqual(
    body.details.causes.map((cause: { field: string }) => cause.field),
    ['spec.matchConstraints.resourceRules', 'spec.validations[0].expression'],
  )
})

test('RPT-60 the status tells fields that the matched kinds do not have', async () => {
  const api = await withPolicy({ validations: [{ expression: 'object.spec.replica <= 5' }] }, {})
  const { body } = await api.call('GET', `${root}/validatingadmissionpolicies/few`)
  assert.equal(body.status.observedGeneration, 1)
  const [warning] = body.status.typeChecking.expressionWarnings
  assert.equal(warning.fieldRef, 'spec.validations[0].expression')
  assert.match(warning.warning, /^apps\/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'/)
  const fixed = await api.merge(`${root}/validatingadmissionpolicies/few`, {
    spec: { validations: [{ expression: 'object.spec.replicas <= 5' }] },
  })
  assert.deepEqual([fixed.body.status.observedGeneration, fixed.body.status.typeChecking], [2, {}])
})
