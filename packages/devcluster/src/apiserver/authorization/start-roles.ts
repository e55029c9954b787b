/** The default roles and bindings of a cluster, as far as they are needed here. */
import type { KubeObject, ResourceType } from '@tenon/api'
import type { LocalApi } from '../../contract.ts'
import type { PolicyRule } from './authorizer.ts'

const read = ['get', 'list', 'watch']
const write = ['create', 'delete', 'deletecollection', 'patch', 'update']

const on = (
  apiGroups: readonly string[],
  resources: readonly string[],
  verbs: readonly string[],
): PolicyRule => ({
  apiGroups,
  resources,
  verbs,
})
const paths = (nonResourceURLs: readonly string[]): PolicyRule => ({ nonResourceURLs, verbs: ['get'] })

const view: readonly PolicyRule[] = [
  on(
    [''],
    [
      'bindings',
      'configmaps',
      'endpoints',
      'limitranges',
      'namespaces',
      'namespaces/status',
      'persistentvolumeclaims',
      'persistentvolumeclaims/status',
      'pods',
      'pods/log',
      'pods/status',
      'replicationcontrollers',
      'replicationcontrollers/scale',
      'replicationcontrollers/status',
      'resourcequotas',
      'resourcequotas/status',
      'serviceaccounts',
      'services',
      'services/status',
    ],
    read,
  ),
  on(['', 'events.k8s.io'], ['events'], read),
  on(['discovery.k8s.io'], ['endpointslices'], read),
  on(
    ['apps'],
    [
      'controllerrevisions',
      ...['daemonsets', 'deployments', 'replicasets', 'statefulsets'].flatMap((one) => [
        one,
        `${one}/status`,
      ]),
      'deployments/scale',
      'replicasets/scale',
      'statefulsets/scale',
    ],
    read,
  ),
  on(['autoscaling'], ['horizontalpodautoscalers', 'horizontalpodautoscalers/status'], read),
  on(['batch'], ['cronjobs', 'cronjobs/status', 'jobs', 'jobs/status'], read),
  on(['policy'], ['poddisruptionbudgets', 'poddisruptionbudgets/status'], read),
  on(['networking.k8s.io'], ['ingresses', 'ingresses/status', 'networkpolicies'], read),
  on(['resource.k8s.io'], ['resourceclaims', 'resourceclaims/status', 'resourceclaimtemplates'], read),
]

const edit: readonly PolicyRule[] = [
  on([''], ['pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy', 'secrets', 'services/proxy'], read),
  on([''], ['serviceaccounts'], ['impersonate']),
  on([''], ['pods', 'pods/attach', 'pods/exec', 'pods/portforward', 'pods/proxy'], write),
  on([''], ['pods/eviction', 'serviceaccounts/token'], ['create']),
  on(
    [''],
    [
      'configmaps',
      'persistentvolumeclaims',
      'replicationcontrollers',
      'replicationcontrollers/scale',
      'secrets',
      'serviceaccounts',
      'services',
      'services/proxy',
    ],
    write,
  ),
  on(['', 'events.k8s.io'], ['events'], write),
  on(
    ['apps'],
    [
      'daemonsets',
      'deployments',
      'deployments/rollback',
      'deployments/scale',
      'replicasets',
      'replicasets/scale',
      'statefulsets',
      'statefulsets/scale',
    ],
    write,
  ),
  on(['autoscaling'], ['horizontalpodautoscalers'], write),
  on(['batch'], ['cronjobs', 'jobs'], write),
  on(['policy'], ['poddisruptionbudgets'], write),
  on(['networking.k8s.io'], ['ingresses', 'networkpolicies'], write),
  on(['coordination.k8s.io'], ['leases'], [...read, ...write]),
  on(['resource.k8s.io'], ['resourceclaims', 'resourceclaimtemplates'], write),
]

const admin: readonly PolicyRule[] = [
  on(['authorization.k8s.io'], ['localsubjectaccessreviews'], ['create']),
  on(['rbac.authorization.k8s.io'], ['rolebindings', 'roles'], [...read, ...write]),
]

const bootstrapping = { 'kubernetes.io/bootstrapping': 'rbac-defaults' }
const aggregateTo = (role: string) => `rbac.authorization.k8s.io/aggregate-to-${role}`

interface StartRole {
  readonly name: string
  readonly namespace?: string
  readonly rules?: readonly PolicyRule[]
  /** The aggregated role that includes these rules. */
  readonly partOf?: string
  /** Whether it aggregates the rules of other roles. */
  readonly isAggregated?: true
}

const certificates = 'certificates.k8s.io'
const nodeClient = 'system:certificates.k8s.io:certificatesigningrequests:nodeclient'
const selfNodeClient = 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient'

const startRoles: readonly StartRole[] = [
  {
    name: 'cluster-admin',
    rules: [on(['*'], ['*'], ['*']), { nonResourceURLs: ['*'], verbs: ['*'] }],
  },
  { name: 'admin', isAggregated: true },
  { name: 'edit', isAggregated: true, partOf: 'admin' },
  { name: 'view', isAggregated: true, partOf: 'edit' },
  { name: 'system:aggregate-to-admin', partOf: 'admin', rules: admin },
  { name: 'system:aggregate-to-edit', partOf: 'edit', rules: edit },
  { name: 'system:aggregate-to-view', partOf: 'view', rules: view },
  {
    name: 'system:basic-user',
    rules: [
      on(['authorization.k8s.io'], ['selfsubjectaccessreviews', 'selfsubjectrulesreviews'], ['create']),
      on(['authentication.k8s.io'], ['selfsubjectreviews'], ['create']),
    ],
  },
  {
    name: 'system:discovery',
    rules: [
      paths([
        '/api',
        '/api/*',
        '/apis',
        '/apis/*',
        '/healthz',
        '/livez',
        '/openapi',
        '/openapi/*',
        '/readyz',
        '/version',
        '/version/',
      ]),
    ],
  },
  {
    name: 'system:public-info-viewer',
    rules: [paths(['/healthz', '/livez', '/readyz', '/version', '/version/'])],
  },
  {
    name: 'system:service-account-issuer-discovery',
    rules: [
      paths([
        '/.well-known/openid-configuration',
        '/.well-known/openid-configuration/',
        '/openid/v1/jwks',
        '/openid/v1/jwks/',
      ]),
    ],
  },
  {
    name: 'system:auth-delegator',
    rules: [
      on(['authentication.k8s.io'], ['tokenreviews'], ['create']),
      on(['authorization.k8s.io'], ['subjectaccessreviews'], ['create']),
    ],
  },
  {
    name: 'system:monitoring',
    rules: [
      paths([
        '/healthz',
        '/healthz/*',
        '/livez',
        '/livez/*',
        '/metrics',
        '/metrics/slis',
        '/readyz',
        '/readyz/*',
      ]),
    ],
  },
  {
    name: 'system:node-bootstrapper',
    rules: [on([certificates], ['certificatesigningrequests'], ['create', ...read])],
  },
  { name: nodeClient, rules: [on([certificates], ['certificatesigningrequests/nodeclient'], ['create'])] },
  {
    name: selfNodeClient,
    rules: [on([certificates], ['certificatesigningrequests/selfnodeclient'], ['create'])],
  },
  { name: 'kubeadm:get-nodes', rules: [on([''], ['nodes'], ['get'])] },
  {
    name: 'kubeadm:bootstrap-signer-clusterinfo',
    namespace: 'kube-public',
    rules: [{ ...on([''], ['configmaps'], ['get']), resourceNames: ['cluster-info'] }],
  },
]

interface StartBinding {
  readonly name: string
  readonly namespace?: string
  readonly role: string
  readonly groups: readonly string[]
  readonly users?: readonly string[]
}

const authenticated = 'system:authenticated'
const bootstrappers = 'system:bootstrappers'

/** Joining instances may read what they need, and request their certificate. */
const startBindings: readonly StartBinding[] = [
  { name: 'cluster-admin', role: 'cluster-admin', groups: ['system:masters'] },
  { name: 'system:basic-user', role: 'system:basic-user', groups: [authenticated] },
  { name: 'system:discovery', role: 'system:discovery', groups: [authenticated] },
  {
    name: 'system:public-info-viewer',
    role: 'system:public-info-viewer',
    groups: [authenticated, 'system:unauthenticated'],
  },
  {
    name: 'system:service-account-issuer-discovery',
    role: 'system:service-account-issuer-discovery',
    groups: ['system:serviceaccounts'],
  },
  { name: 'system:monitoring', role: 'system:monitoring', groups: ['system:monitoring'] },
  { name: 'kubeadm:kubelet-bootstrap', role: 'system:node-bootstrapper', groups: [bootstrappers] },
  { name: 'kubeadm:node-autoapprove-bootstrap', role: nodeClient, groups: [bootstrappers] },
  { name: 'kubeadm:node-autoapprove-certificate-rotation', role: selfNodeClient, groups: ['system:nodes'] },
  { name: 'kubeadm:get-nodes', role: 'kubeadm:get-nodes', groups: [bootstrappers] },
  {
    name: 'kubeadm:bootstrap-signer-clusterinfo',
    namespace: 'kube-public',
    role: 'kubeadm:bootstrap-signer-clusterinfo',
    groups: [bootstrappers],
    users: ['system:anonymous'],
  },
]

const apiVersion = 'rbac.authorization.k8s.io/v1'
const apiGroup = 'rbac.authorization.k8s.io'

function roleObject({ name, namespace, rules, partOf, isAggregated }: StartRole) {
  const labels = { ...bootstrapping, ...(partOf !== undefined && { [aggregateTo(partOf)]: 'true' }) }
  return {
    apiVersion,
    kind: namespace === undefined ? 'ClusterRole' : 'Role',
    metadata: { name, ...(namespace !== undefined && { namespace }), labels },
    ...(isAggregated && {
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [aggregateTo(name)]: 'true' } }] },
    }),
    rules: rules ?? [],
  }
}

function bindingObject({ name, namespace, role, groups, users = [] }: StartBinding) {
  const subject = (kind: string) => (of: string) => ({ apiGroup, kind, name: of })
  return {
    apiVersion,
    kind: namespace === undefined ? 'ClusterRoleBinding' : 'RoleBinding',
    metadata: { name, ...(namespace !== undefined && { namespace }), labels: bootstrapping },
    roleRef: { apiGroup, kind: namespace === undefined ? 'ClusterRole' : 'Role', name: role },
    subjects: [...groups.map(subject('Group')), ...users.map(subject('User'))],
  }
}

function typeOf(kind: string): ResourceType {
  const namespaced = !kind.startsWith('Cluster')
  return { group: apiGroup, version: 'v1', kind, plural: `${kind.toLowerCase()}s`, namespaced }
}

/** Creates missing roles and bindings; existing ones stay unchanged. */
export function createStartRoles(api: LocalApi): void {
  const objects = [...startRoles.map(roleObject), ...startBindings.map(bindingObject)]
  for (const object of objects) {
    const type = typeOf(object.kind)
    const { namespace, name }: KubeObject['metadata'] = object.metadata
    if (api.get(type, namespace, name) === undefined) api.create<KubeObject>(type, object)
  }
}
