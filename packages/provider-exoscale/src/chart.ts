/** What Exoscale adds to the chart. */
import type { ProviderChart } from '@tenon/provider'

const uuid = '[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'

export const chart: ProviderChart = {
  values: [
    {
      name: 'zone',
      meaning: 'Zone of the cluster, such as `ch-gva-2`; needed.',
      initial: '',
      needed: 'such as ch-gva-2',
      to: { kind: 'variable', variable: 'EXOSCALE_ZONE' },
    },
    {
      name: 'clusterId',
      meaning: 'UUID of the SKS cluster; needed.',
      initial: '',
      schema: { type: 'string', pattern: `^(${uuid})?$` },
      needed: 'the UUID of the SKS cluster',
      to: { kind: 'variable', variable: 'EXOSCALE_SKS_CLUSTER_ID' },
    },
    {
      name: 'credentialsSecret',
      meaning:
        "Secret in the release's namespace with the entries `EXOSCALE_API_KEY` and `EXOSCALE_API_SECRET`; without it they have to come by `controller.env` or `controller.envFrom`.",
      initial: '',
      to: { kind: 'secretVariables', variables: ['EXOSCALE_API_KEY', 'EXOSCALE_API_SECRET'] },
    },
    {
      name: 'instancePrefix',
      meaning: 'Put before the name of every instance, without a separator.',
      initial: '',
      to: { kind: 'variable', variable: 'EXOSCALE_COMPUTE_INSTANCE_PREFIX' },
    },
    {
      name: 'clusterDomain',
      meaning: "Domain of the cluster's DNS.",
      initial: 'cluster.local',
      to: { kind: 'variable', variable: 'CLUSTER_DOMAIN' },
    },
    {
      name: 'clusterEndpoint',
      meaning: 'URL of the API server as new nodes see it, which is not the one that pods see.',
      initial: '',
      to: { kind: 'variable', variable: 'CLUSTER_ENDPOINT' },
    },
    {
      name: 'apiEndpoint',
      meaning: 'URL of another Exoscale API, with `/v2`.',
      initial: '',
      to: { kind: 'variable', variable: 'EXOSCALE_API_ENDPOINT' },
    },
    {
      name: 'apiEnvironment',
      meaning: "`ppapi` for Exoscale's pre-production API.",
      initial: '',
      schema: { enum: ['', 'ppapi'] },
      to: { kind: 'variable', variable: 'EXOSCALE_API_ENVIRONMENT' },
    },
    {
      name: 'currency',
      meaning: '`EUR`, `CHF` or `USD`: the list that prices are taken from.',
      initial: 'EUR',
      schema: { enum: ['EUR', 'CHF', 'USD'] },
      to: { kind: 'variable', variable: 'EXOSCALE_CURRENCY' },
    },
    {
      name: 'gpuDevices',
      meaning:
        "`nvidia` where NVIDIA's driver for dynamic resource allocation runs on the GPU nodes: pods with ResourceClaims get GPU nodes, see docs/exoscale/features.md.",
      initial: '',
      schema: { enum: ['', 'nvidia'] },
      to: { kind: 'variable', variable: 'EXOSCALE_GPU_DEVICES' },
    },
    {
      name: 'prices',
      meaning:
        'Prices in place of built-in ones: JSON text with an object for each currency, see docs/exoscale/cost.md.',
      initial: '',
      to: {
        kind: 'file',
        variable: 'EXOSCALE_PRICE_FILE',
        file: 'prices.json',
        jsonObject: 'an object for each currency, such as {"EUR": {"standard.small": 0.05}}',
      },
    },
  ],
  rules: [
    { apiGroups: ['karpenter.exoscale.com'], resources: ['exoscalenodeclasses'], verbs: ['patch'] },
    { apiGroups: ['karpenter.exoscale.com'], resources: ['exoscalenodeclasses/status'], verbs: ['patch'] },
    // The Node is created before its instance has booted.
    { apiGroups: [''], resources: ['nodes'], verbs: ['create'] },
  ],
  roles: [
    // Bootstrap tokens are Secrets of kube-system, and only there.
    {
      name: 'bootstrap',
      namespace: 'kube-system',
      rules: [
        { apiGroups: [''], resources: ['secrets'], verbs: ['list', 'create', 'delete'] },
        { apiGroups: [''], resources: ['configmaps'], resourceNames: ['kube-root-ca.crt'], verbs: ['get'] },
      ],
    },
    // The cluster's certificate authority for new nodes.
    {
      name: 'cluster-info',
      namespace: 'kube-public',
      rules: [
        { apiGroups: [''], resources: ['configmaps'], resourceNames: ['cluster-info'], verbs: ['get'] },
      ],
    },
  ],
}
