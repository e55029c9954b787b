/** What Cluster API adds to the chart (cluster-api.md 14 to 16). */
import type { ProviderChart } from '@tenon/provider'
import { hubRules, workloadRules } from './rights.ts'

export const chart: ProviderChart = {
  values: [
    {
      name: 'kubeconfigSecret',
      meaning:
        "Secret in the release's namespace whose entry `kubeconfig` leads to the management cluster; without it, and without `url`, that is the cluster itself.",
      initial: '',
      to: { kind: 'secretFile', variable: 'CLUSTER_API_KUBECONFIG', entry: 'kubeconfig' },
    },
    {
      name: 'url',
      meaning: 'URL of the API server of the management cluster, in place of a kubeconfig.',
      initial: '',
      to: { kind: 'variable', variable: 'CLUSTER_API_URL' },
    },
    {
      name: 'credentialsSecret',
      meaning:
        "Secret in the release's namespace with the entries `CLUSTER_API_TOKEN` and `CLUSTER_API_CERTIFICATE_AUTHORITY_DATA` (PEM), for `url`.",
      initial: '',
      to: {
        kind: 'secretVariables',
        variables: ['CLUSTER_API_TOKEN', 'CLUSTER_API_CERTIFICATE_AUTHORITY_DATA'],
      },
    },
    {
      name: 'namespace',
      meaning: 'Only MachineDeployments in this namespace of the management cluster; all of them without it.',
      initial: '',
      to: { kind: 'variable', variable: 'CLUSTER_API_NAMESPACE' },
    },
    {
      name: 'clusterName',
      meaning:
        'Only MachineDeployments of this Cluster; needed where the management cluster has several with members.',
      initial: '',
      to: { kind: 'variable', variable: 'CLUSTER_API_CLUSTER_NAME' },
    },
    {
      name: 'prices',
      meaning:
        'Prices of an hour by instance type, for MachineDeployments without an annotation: JSON text, see docs/cluster-api/prices.md.',
      initial: '',
      to: {
        kind: 'file',
        variable: 'CLUSTER_API_PRICES_PATH',
        file: 'cluster-api-prices.json',
        jsonObject: 'prices by instance type, such as {"currency": "EUR", "prices": {"m.large": 0.12}}',
      },
    },
  ],
  // By default the cluster is its own management cluster; otherwise these rules match nothing.
  rules: [...workloadRules, ...hubRules],
  roles: [],
  note: 'A management cluster of its own needs the rights of docs/cluster-api/hub-rbac.yaml.',
}
