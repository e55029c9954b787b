import type { KubeObject, ResourceType } from '@tenon/api'
import type { LocalApi } from '../contract.ts'
import { apiServiceAddress } from './cluster-addresses.ts'

/** The address of the API server and its certificate authority. */
export interface Endpoint {
  readonly host: string
  readonly port: number
  /** PEM of the certificate authority. */
  readonly certificateAuthority: string
}

const namespaceType: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'Namespace',
  plural: 'namespaces',
  namespaced: false,
}
const configMapType: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'ConfigMap',
  plural: 'configmaps',
  namespaced: true,
}
const serviceType: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
}
const endpointsType: ResourceType = {
  group: '',
  version: 'v1',
  kind: 'Endpoints',
  plural: 'endpoints',
  namespaced: true,
}
const priorityClassType: ResourceType = {
  group: 'scheduling.k8s.io',
  version: 'v1',
  kind: 'PriorityClass',
  plural: 'priorityclasses',
  namespaced: false,
}

/** Creates the default objects of a cluster; existing ones stay unchanged. */
export function createStartObjects(api: LocalApi): void {
  for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease'])
    ensure(api, namespaceType, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  priorityClass(api, 'system-cluster-critical', 2_000_000_000, 'must run, but can be moved to another node')
  priorityClass(api, 'system-node-critical', 2_000_001_000, 'must run on its node')
  ensure(api, serviceType, {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: {
      name: 'kubernetes',
      namespace: 'default',
      labels: { component: 'apiserver', provider: 'kubernetes' },
    },
    spec: {
      type: 'ClusterIP',
      clusterIP: apiServiceAddress,
      clusterIPs: [apiServiceAddress],
      ports: [{ name: 'https', port: 443, protocol: 'TCP', targetPort: 443 }],
    },
  })
}

/** Publishes the address of the API server: the default Endpoints and the public cluster-info. */
export function publishEndpoint(api: LocalApi, endpoint: Endpoint): void {
  replace(api, endpointsType, {
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'kubernetes', namespace: 'default' },
    subsets: [
      {
        addresses: [{ ip: endpoint.host === 'localhost' ? '127.0.0.1' : endpoint.host }],
        ports: [{ name: 'https', port: endpoint.port, protocol: 'TCP' }],
      },
    ],
  })
  replace(api, configMapType, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'cluster-info', namespace: 'kube-public' },
    data: { kubeconfig: clusterInfo(endpoint) },
  })
}

/** A kubeconfig without a user, for joining instances. */
function clusterInfo({ host, port, certificateAuthority }: Endpoint): string {
  return [
    'apiVersion: v1',
    'kind: Config',
    'clusters:',
    '- name: ""',
    '  cluster:',
    `    certificate-authority-data: ${Buffer.from(certificateAuthority).toString('base64')}`,
    `    server: https://${host}:${port}`,
    'contexts: null',
    'current-context: ""',
    'preferences: {}',
    'users: null',
    '',
  ].join('\n')
}

function priorityClass(api: LocalApi, name: string, value: number, description: string): void {
  ensure(api, priorityClassType, {
    apiVersion: 'scheduling.k8s.io/v1',
    kind: 'PriorityClass',
    metadata: { name },
    value,
    description: `For pods of the system that ${description}.`,
  })
}

type NewObject = KubeObject & { readonly [field: string]: unknown }

function ensure(api: LocalApi, type: ResourceType, object: NewObject): void {
  // Read first, as creating an existing Service would conflict with its own address.
  if (api.get(type, object.metadata.namespace, object.metadata.name) === undefined) api.create(type, object)
}

function replace(api: LocalApi, type: ResourceType, object: NewObject): void {
  const { namespace, name } = object.metadata
  if (api.get(type, namespace, name) === undefined) api.create(type, object)
  else api.update(type, object)
}
