import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  type Answer,
  aConfigMap,
  aPod,
  configMapsPath,
  podsPath,
  TestServer,
} from '../api-server.test-support.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const apiVersion = 'rbac.authorization.k8s.io/v1'
const apiGroup = 'rbac.authorization.k8s.io'

async function made(api: TestServer, path: string, object: object): Promise<Answer> {
  const answer = await api.call('POST', path, object)
  assert.equal(answer.status, 201, answer.body.message)
  return answer
}

/** A server with a service account, and that account's token. */
async function withAccount(name = 'robot'): Promise<{ readonly api: TestServer; readonly token: string }> {
  const api = new TestServer()
  const accounts = '/api/v1/namespaces/default/serviceaccounts'
  await made(api, accounts, { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } })
  const { body } = await made(api, `${accounts}/${name}/token`, { spec: {} })
  return { api, token: body.status.token }
}

const role = (name: string, rules: readonly object[]) => ({
  apiVersion,
  kind: 'Role',
  metadata: { name },
  rules,
})
const clusterRole = (name: string, rules: readonly object[], labels = {}) => ({
  ...role(name, rules),
  kind: 'ClusterRole',
  metadata: { name, labels },
})
const robot = { kind: 'ServiceAccount', name: 'robot' }

function binding(kind: 'Role' | 'ClusterRole', name: string, subject: object = robot): object {
  const roleRef = { apiGroup, kind, name }
  return { apiVersion, kind: 'RoleBinding', metadata: { name }, roleRef, subjects: [subject] }
}

function clusterBinding(name: string, subject: object = { ...robot, namespace: 'default' }): object {
  const roleRef = { apiGroup, kind: 'ClusterRole', name }
  return { apiVersion, kind: 'ClusterRoleBinding', metadata: { name }, roleRef, subjects: [subject] }
}

const rolesPath = `${rbac}/namespaces/default/roles`
const bindingsPath = `${rbac}/namespaces/default/rolebindings`
const pods = (verbs: readonly string[], more = {}) => ({
  apiGroups: [''],
  resources: ['pods'],
  verbs,
  ...more,
})

test('RPT-42 a service account may do nothing but discover until a role is bound to it', async () => {
  const { api, token } = await withAccount()
  const refused = await api.call('GET', podsPath, undefined, { token })
  assert.deepEqual([refused.status, refused.body.reason], [403, 'Forbidden'])
  assert.equal(
    refused.body.message,
    'pods is forbidden: User "system:serviceaccount:default:robot" cannot list resource "pods" in API group "" in the namespace "default"',
  )
  const one = await api.call('DELETE', '/api/v1/nodes/n1', undefined, { token })
  assert.equal(
    one.body.message,
    'nodes "n1" is forbidden: User "system:serviceaccount:default:robot" cannot delete resource "nodes" in API group "" at the cluster scope',
  )
  assert.equal((await api.call('GET', '/apis', undefined, { token })).status, 200)
  await made(api, rolesPath, role('reader', [pods(['get', 'list'])]))
  await made(api, bindingsPath, binding('Role', 'reader'))
  assert.equal((await api.call('GET', podsPath, undefined, { token })).status, 200)
  assert.equal((await api.call('POST', podsPath, aPod('p'), { token })).status, 403)
  assert.equal((await api.call('GET', '/api/v1/pods', undefined, { token })).status, 403)
  assert.equal(
    (await api.call('GET', '/api/v1/namespaces/kube-system/pods', undefined, { token })).status,
    403,
  )
  assert.equal((await api.call('GET', `${podsPath}?watch=true`, undefined, { token })).status, 403)
  await api.call('DELETE', `${bindingsPath}/reader`)
  assert.equal((await api.call('GET', podsPath, undefined, { token })).status, 403)
})

test('RPT-42 names, subresources and verbs count one by one', async () => {
  const { api, token } = await withAccount()
  const configMaps = { apiGroups: [''], resources: ['configmaps'] }
  await made(
    api,
    rolesPath,
    role('some', [
      { ...configMaps, verbs: ['get', 'update'], resourceNames: ['mine'] },
      pods(['patch']),
      { apiGroups: [''], resources: ['pods/eviction'], verbs: ['create'] },
    ]),
  )
  await made(api, bindingsPath, binding('Role', 'some'))
  await made(api, configMapsPath, aConfigMap('mine'))
  await made(api, configMapsPath, aConfigMap('yours'))
  await made(api, podsPath, aPod('p'))
  const status = async (method: string, path: string, body?: unknown, contentType = 'application/json') =>
    (await api.call(method, path, body, { token, contentType })).status
  assert.equal(await status('GET', `${configMapsPath}/mine`), 200)
  assert.equal(await status('GET', `${configMapsPath}/yours`), 403)
  assert.equal(await status('GET', configMapsPath), 403)
  const merge = 'application/merge-patch+json'
  assert.equal(await status('PATCH', `${podsPath}/p`, { metadata: { labels: { a: 'b' } } }, merge), 200)
  assert.equal(await status('PATCH', `${podsPath}/p/status`, { status: { phase: 'Running' } }, merge), 403)
  assert.equal(await status('DELETE', `${podsPath}/p`), 403)
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'p' } }
  assert.equal(await status('POST', `${podsPath}/p/eviction`, eviction), 201)
})

test('RPT-42 cluster roles bound in a namespace hold there, bound in the cluster everywhere', async () => {
  const { api, token } = await withAccount()
  await made(api, bindingsPath, binding('ClusterRole', 'view'))
  assert.equal((await api.call('GET', podsPath, undefined, { token })).status, 200)
  const secrets = '/api/v1/namespaces/default/secrets'
  assert.equal((await api.call('GET', secrets, undefined, { token })).status, 403)
  assert.equal((await api.call('GET', '/api/v1/pods', undefined, { token })).status, 403)
  await made(api, `${rbac}/clusterrolebindings`, clusterBinding('view'))
  assert.equal((await api.call('GET', '/api/v1/pods', undefined, { token })).status, 200)
  assert.equal((await api.call('POST', podsPath, aPod('p'), { token })).status, 403)
})

test('RPT-42 what says so becomes part of an aggregated role', async () => {
  const { api, token } = await withAccount()
  await made(api, `${rbac}/clusterrolebindings`, clusterBinding('view'))
  assert.equal((await api.call('GET', '/api/v1/nodes', undefined, { token })).status, 403)
  const nodes = { apiGroups: [''], resources: ['nodes'], verbs: ['list'] }
  const labels = { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' }
  await made(api, `${rbac}/clusterroles`, clusterRole('node-viewer', [nodes], labels))
  assert.equal((await api.call('GET', '/api/v1/nodes', undefined, { token })).status, 200)
})

test('RPT-42 groups are subjects as well, and paths need rights of their own', async () => {
  const { api, token } = await withAccount()
  const group = { apiGroup, kind: 'Group', name: 'system:serviceaccounts:default' }
  await made(api, bindingsPath, binding('ClusterRole', 'edit', group))
  assert.equal((await api.call('POST', podsPath, aPod('p'), { token })).status, 201)
  const refused = await api.call('GET', '/metrics', undefined, { token })
  assert.equal(refused.status, 403)
  assert.match(
    refused.body.message,
    /^forbidden: User "system:serviceaccount:default:robot" cannot get path "\/metrics"$/,
  )
})

test('RPT-42 reviews tell the truth, for oneself and for others', async () => {
  const { api, token } = await withAccount()
  await made(api, rolesPath, role('reader', [pods(['get', 'list'])]))
  await made(api, bindingsPath, binding('Role', 'reader'))
  const reviews = '/apis/authorization.k8s.io/v1'
  const ask = async (resourceAttributes: object, options = { token }) => {
    const review = {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes },
    }
    const answer = await api.call('POST', `${reviews}/selfsubjectaccessreviews`, review, options)
    return answer.body.status.allowed
  }
  assert.equal(await ask({ namespace: 'default', verb: 'list', resource: 'pods' }), true)
  assert.equal(await ask({ namespace: 'default', verb: 'create', resource: 'pods' }), false)
  assert.equal(await ask({ namespace: 'other', verb: 'list', resource: 'pods' }), false)
  assert.equal(await ask({ namespace: 'default', verb: 'get', resource: 'pods', subresource: 'log' }), false)
  assert.equal(await ask({ verb: '*', group: '*', resource: '*' }), false)
  assert.equal(await ask({ verb: '*', group: '*', resource: '*' }, { token: 'admin' }), true)
  const other = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: {
      user: 'system:serviceaccount:default:robot',
      resourceAttributes: { namespace: 'default', verb: 'get', resource: 'pods', name: 'p' },
    },
  }
  assert.equal((await api.call('POST', `${reviews}/subjectaccessreviews`, other)).body.status.allowed, true)
  assert.equal((await api.call('POST', `${reviews}/subjectaccessreviews`, other, { token })).status, 403)
  const rules = await api.call(
    'POST',
    `${reviews}/selfsubjectrulesreviews`,
    { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace: 'default' } },
    { token },
  )
  assert.deepEqual(
    rules.body.status.resourceRules.find(({ resources }: { resources: string[] }) =>
      resources.includes('pods'),
    ),
    { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] },
  )
})

test('RPT-42 nobody grants more than they have, unless they may escalate or bind', async () => {
  const { api, token } = await withAccount()
  const write = { apiGroups: [apiGroup], resources: ['roles', 'rolebindings'], verbs: ['create', 'update'] }
  await made(api, rolesPath, role('granter', [write, pods(['get'])]))
  await made(api, bindingsPath, binding('Role', 'granter'))
  assert.equal((await api.call('POST', rolesPath, role('same', [pods(['get'])]), { token })).status, 201)
  const refused = await api.call('POST', rolesPath, role('more', [pods(['get', 'delete'])]), { token })
  assert.equal(refused.status, 403)
  assert.match(refused.body.message, /is attempting to grant RBAC permissions not currently held:/)
  assert.match(refused.body.message, /"verbs":\["delete"\]/)
  assert.equal((await api.call('POST', bindingsPath, binding('ClusterRole', 'edit'), { token })).status, 403)
  assert.equal((await api.call('POST', bindingsPath, binding('Role', 'same'), { token })).status, 201)
  const bind = {
    apiGroups: [apiGroup],
    resources: ['clusterroles'],
    verbs: ['bind'],
    resourceNames: ['edit'],
  }
  await made(api, `${rbac}/clusterroles`, clusterRole('binder', [bind]))
  await made(api, `${rbac}/clusterrolebindings`, clusterBinding('binder'))
  assert.equal((await api.call('POST', bindingsPath, binding('ClusterRole', 'edit'), { token })).status, 201)
})

test('RPT-42 the administrator is of system:masters, and no role takes that away', async () => {
  const api = new TestServer()
  for (const path of ['clusterrolebindings', 'clusterroles']) {
    assert.equal((await api.call('DELETE', `${rbac}/${path}`)).status, 200)
  }
  assert.equal((await api.call('POST', podsPath, aPod('p'))).status, 201)
})
