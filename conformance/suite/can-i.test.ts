/** Holds the embedded API server to kube-apiserver: who may do what, by the roles of every cluster and by others. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { SendRequest } from '../../test/world/src/crds/tests/crd-case.test-support.ts'
import { type AskEmbedded, createEmbedded } from '../src/defaulting/embedded.ts'
import { inParallel } from '../src/parallel.ts'
import { administrator } from './administrator.ts'
import { sharedControlPlane } from './cluster.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const apiGroup = 'rbac.authorization.k8s.io'
const here = '/namespaces/default'

const clusterRole = (
  name: string,
  rules: readonly object[],
  labels: Readonly<Record<string, string>> = {},
) => ({
  path: `${rbac}/clusterroles`,
  object: { apiVersion: `${apiGroup}/v1`, kind: 'ClusterRole', metadata: { name, labels }, rules },
})

const binding = (name: string, role: string, subjects: readonly object[], isLocal = false) => ({
  path: isLocal ? `${rbac}${here}/rolebindings` : `${rbac}/clusterrolebindings`,
  object: {
    apiVersion: `${apiGroup}/v1`,
    kind: isLocal ? 'RoleBinding' : 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup, kind: 'ClusterRole', name: role },
    subjects,
  },
})

const group = (name: string) => ({ kind: 'Group', name, apiGroup })
const account = (name: string, namespace = 'default') => ({ kind: 'ServiceAccount', name, namespace })

/** The same on both servers. */
const objects = [
  clusterRole('can-i-widgets', [
    { apiGroups: ['can-i.example'], resources: ['widgets'], verbs: ['get', 'list'] },
    { apiGroups: ['can-i.example'], resources: ['widgets/status'], resourceNames: ['one'], verbs: ['*'] },
    { apiGroups: ['apps'], resources: ['*/scale'], verbs: ['update'] },
    { nonResourceURLs: ['/metrics', '/debug/*'], verbs: ['get'] },
  ]),
  clusterRole(
    'can-i-aggregated',
    [{ apiGroups: ['can-i.example'], resources: ['gadgets'], verbs: ['get'] }],
    { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' },
  ),
  binding('can-i-widgets', 'can-i-widgets', [account('maker'), group('can-i:makers')]),
  binding('can-i-viewers', 'view', [group('can-i:viewers')]),
  binding('can-i-editors', 'edit', [{ kind: 'User', name: 'can-i-editor', apiGroup }], true),
  binding('can-i-admins', 'admin', [account('chief', 'kube-system')], true),
  binding('can-i-owners', 'cluster-admin', [group('can-i:owners')], true),
]

/** What an installer such as kubeadm makes, and the embedded cluster has from the start. */
const installed = [
  `${rbac}/clusterroles/kubeadm:get-nodes`,
  `${rbac}/namespaces/kube-public/roles/kubeadm:bootstrap-signer-clusterinfo`,
  `${rbac}/namespaces/kube-public/rolebindings/kubeadm:bootstrap-signer-clusterinfo`,
  ...[
    'get-nodes',
    'kubelet-bootstrap',
    'node-autoapprove-bootstrap',
    'node-autoapprove-certificate-rotation',
  ].map((name) => `${rbac}/clusterrolebindings/kubeadm:${name}`),
]

const authenticated = 'system:authenticated'
const ofAccount = (namespace: string, name: string) => ({
  user: `system:serviceaccount:${namespace}:${name}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, authenticated],
})

const subjects = [
  { user: 'nobody', groups: [authenticated] },
  { user: 'system:anonymous', groups: ['system:unauthenticated'] },
  { user: 'root', groups: ['system:masters', authenticated] },
  { user: 'system:bootstrap:abcdef', groups: ['system:bootstrappers', authenticated] },
  {
    user: 'system:bootstrap:fedcba',
    groups: ['system:bootstrappers', 'system:bootstrappers:kubeadm:default-node-token', authenticated],
  },
  { user: 'me', groups: ['can-i:makers', authenticated] },
  { user: 'you', groups: ['can-i:viewers', authenticated] },
  { user: 'them', groups: ['can-i:owners'] },
  { user: 'can-i-editor', groups: [authenticated] },
  ofAccount('default', 'maker'),
  ofAccount('default', 'default'),
  ofAccount('kube-system', 'chief'),
  ofAccount('kube-system', 'maker'),
]

const resource = (verb: string, apiGroupOf: string, name: string, more: object = {}) => ({
  resourceAttributes: {
    verb,
    group: apiGroupOf,
    version: '*',
    resource: name,
    namespace: 'default',
    ...more,
  },
})

const questions = [
  resource('get', '', 'pods'),
  resource('list', '', 'pods', { namespace: '' }),
  resource('create', '', 'pods'),
  resource('create', '', 'pods', { subresource: 'eviction' }),
  resource('create', '', 'pods', { subresource: 'exec' }),
  resource('get', '', 'pods', { subresource: 'log' }),
  resource('get', '', 'secrets'),
  resource('get', '', 'secrets', { namespace: 'kube-system' }),
  resource('get', '', 'configmaps', { namespace: 'kube-public', name: 'cluster-info' }),
  resource('get', '', 'nodes', { namespace: '' }),
  resource('delete', '', 'nodes', { namespace: '' }),
  resource('get', '', 'namespaces', { name: 'default' }),
  resource('create', '', 'namespaces', { namespace: '' }),
  resource('delete', '', 'namespaces', { name: 'default' }),
  resource('impersonate', '', 'serviceaccounts'),
  resource('create', '', 'serviceaccounts', { subresource: 'token' }),
  resource('update', 'apps', 'deployments'),
  resource('update', 'apps', 'deployments', { subresource: 'scale' }),
  resource('patch', 'apps', 'statefulsets', { subresource: 'scale', namespace: 'kube-system' }),
  resource('get', 'apps', 'deployments', { subresource: 'status' }),
  resource('get', 'batch', 'jobs'),
  resource('deletecollection', 'batch', 'jobs'),
  resource('get', 'can-i.example', 'widgets'),
  resource('watch', 'can-i.example', 'widgets'),
  resource('get', 'can-i.example', 'widgets', { namespace: 'kube-system' }),
  resource('update', 'can-i.example', 'widgets', { subresource: 'status', name: 'one' }),
  resource('update', 'can-i.example', 'widgets', { subresource: 'status', name: 'two' }),
  resource('update', 'can-i.example', 'widgets', { subresource: 'status' }),
  resource('get', 'can-i.example', 'gadgets'),
  resource('get', 'rbac.authorization.k8s.io', 'roles'),
  resource('bind', 'rbac.authorization.k8s.io', 'clusterroles', { namespace: '' }),
  resource('create', 'rbac.authorization.k8s.io', 'rolebindings'),
  resource('create', 'certificates.k8s.io', 'certificatesigningrequests', { namespace: '' }),
  resource('create', 'authorization.k8s.io', 'selfsubjectaccessreviews', { namespace: '' }),
  resource('create', 'authorization.k8s.io', 'localsubjectaccessreviews'),
  resource('create', 'authentication.k8s.io', 'selfsubjectreviews', { namespace: '' }),
  resource('get', 'coordination.k8s.io', 'leases'),
  resource('list', 'storage.k8s.io', 'storageclasses', { namespace: '' }),
  resource('*', '*', '*'),
  resource('*', '*', '*', { namespace: '' }),
  ...[
    '/healthz',
    '/version',
    '/version/',
    '/api',
    '/apis/apps',
    '/openapi/v2',
    '/metrics',
    '/metrics/cadvisor',
    '/debug/pprof',
    '/logs',
  ].map((path) => ({ nonResourceAttributes: { path, verb: 'get' } })),
]

const reviews = '/apis/authorization.k8s.io/v1/subjectaccessreviews'

const review = (subject: object, question: object) => ({
  apiVersion: 'authorization.k8s.io/v1',
  kind: 'SubjectAccessReview',
  spec: { ...subject, ...question },
})

describe('access reviews', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let real: SendRequest
  const embedded: AskEmbedded = createEmbedded()

  before(async () => {
    controlPlane = await sharedControlPlane()
    real = await administrator(controlPlane.kubeconfigPath)
    for (const path of installed) {
      const { metadata, ...object } = (await embedded('GET', path)).body
      const { name } = metadata as { readonly name: string }
      const answer = await real('POST', path.slice(0, path.lastIndexOf('/')), {
        ...object,
        metadata: { name },
      })
      assert.ok(answer.status === 201 || answer.status === 409, String(answer.body.message))
    }
    for (const { path, object } of objects) {
      for (const send of [real, embedded]) {
        const answer = await send('POST', path, object)
        assert.ok(answer.status === 201 || answer.status === 409, String(answer.body['message']))
      }
    }
  })

  after(async () => {
    for (const { path, object } of objects) await real('DELETE', `${path}/${object.metadata.name}`)
    for (const path of installed) await real('DELETE', path)
    await controlPlane.stop()
  })

  test('RPT-42 the embedded API server says of everyone what kube-apiserver says', async (context) => {
    // A controller of the real one adds up aggregated roles.
    const seesGadgets = review(
      { user: 'you', groups: ['can-i:viewers'] },
      resource('get', 'can-i.example', 'gadgets'),
    )
    for (let turn = 0; turn < 100; turn++) {
      if ((await real('POST', reviews, seesGadgets)).body.status.allowed === true) break
    }
    const asked = subjects.flatMap((subject) => questions.map((question) => ({ subject, question })))
    const wrong: string[] = []
    let allowed = 0
    await inParallel(asked, async ({ subject, question }) => {
      const body = review(subject, question)
      const truth: unknown = (await real('POST', reviews, body)).body.status?.allowed
      const ours = ((await embedded('POST', reviews, body)).body['status'] as { readonly allowed?: unknown })
        .allowed
      if (truth === true) allowed++
      if (truth !== ours) wrong.push(`${subject.user}: ${JSON.stringify(question)}: real ${String(truth)}`)
    })
    context.diagnostic(`${asked.length} questions, ${allowed} allowed`)
    assert.ok(allowed > asked.length / 10 && allowed < asked.length / 2, `${allowed} allowed`)
    assert.deepEqual(wrong, [])
  })
})
