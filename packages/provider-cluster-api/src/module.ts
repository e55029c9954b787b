import type { ProviderModule, ProviderOption } from '@tenon/provider'
import { clusterAPINodeClassKind } from './node-class.ts'

const options: readonly ProviderOption[] = [
  {
    flag: 'cluster-api-kubeconfig',
    variable: 'CLUSTER_API_KUBECONFIG',
    kind: 'text',
    fallback: '',
    takes: 'PATH',
    meaning: 'Kubeconfig of the management cluster (default: the cluster itself).',
  },
  {
    flag: 'cluster-api-url',
    variable: 'CLUSTER_API_URL',
    kind: 'text',
    fallback: '',
    takes: 'URL',
    meaning: 'API server of the management cluster, in place of a kubeconfig.',
  },
  {
    flag: 'cluster-api-token',
    variable: 'CLUSTER_API_TOKEN',
    kind: 'text',
    fallback: '',
    takes: 'TOKEN',
    meaning: 'Bearer token for --cluster-api-url.',
  },
  {
    flag: 'cluster-api-certificate-authority-data',
    variable: 'CLUSTER_API_CERTIFICATE_AUTHORITY_DATA',
    kind: 'text',
    fallback: '',
    takes: 'PEM',
    meaning: 'Certificate authority for --cluster-api-url, as PEM text.',
  },
  {
    flag: 'cluster-api-skip-tls-verify',
    variable: 'CLUSTER_API_SKIP_TLS_VERIFY',
    kind: 'boolean',
    fallback: 'false',
    takes: 'BOOL',
    meaning: 'Trust whoever answers at --cluster-api-url.',
  },
  {
    flag: 'cluster-api-namespace',
    variable: 'CLUSTER_API_NAMESPACE',
    kind: 'text',
    fallback: '',
    takes: 'NAMESPACE',
    meaning: 'Only MachineDeployments in this namespace of the management cluster (default: all).',
  },
  {
    flag: 'cluster-api-cluster-name',
    variable: 'CLUSTER_API_CLUSTER_NAME',
    kind: 'text',
    fallback: '',
    takes: 'NAME',
    meaning: 'Only MachineDeployments of this Cluster; needed where the management cluster has several.',
  },
  {
    flag: 'cluster-api-prices-path',
    variable: 'CLUSTER_API_PRICES_PATH',
    kind: 'text',
    fallback: '',
    takes: 'PATH',
    meaning: 'JSON file with the price of an hour by instance type, for those without an annotation.',
  },
]

/** Any infrastructure that Cluster API manages. */
export const clusterApi: ProviderModule = {
  name: 'cluster-api',
  title: 'Cluster API',
  repairsNodes: true,
  nodeClasses: [clusterAPINodeClassKind],
  options,
  validateOptions: [],
  examples: {
    controller: ['tenon controller --provider cluster-api --cluster-api-kubeconfig hub.kubeconfig'],
    validate: ['tenon validate examples/cluster-api'],
    preflight: [
      'tenon preflight --mode cluster-autoscaler --cloud-provider clusterapi --cloud-config hub.kubeconfig',
    ],
  },
  formerNodeClasses: {},
  crds: async () => {
    const { clusterAPINodeClassCrd } = await import('./nodeclass/crd.ts')
    return [clusterAPINodeClassCrd]
  },
  chart: async () => {
    const { chart } = await import('./chart.ts')
    return chart
  },
  open: async (dependencies) => {
    const { openClusterApi } = await import('./open.ts')
    return await openClusterApi(dependencies)
  },
  offline: async (env, readText) => {
    const { offlineCatalogue } = await import('./offline.ts')
    return await offlineCatalogue(env, readText)
  },
  nodeGroupsCloud: 'clusterapi',
  nodeGroups: async () => {
    const { nodeGroupModule } = await import('./node-groups/open.ts')
    return nodeGroupModule
  },
  survey: async () => {
    const { surveyModule } = await import('./survey.ts')
    return surveyModule
  },
  preflight: async () => {
    const { preflightModule } = await import('./preflight.ts')
    return preflightModule
  },
}
