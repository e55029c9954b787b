/**
 * What Clever Cloud adds to the chart, and how values of its own Karpenter chart map to ours (clever-cloud.md 14, 15).
 */
import type { ProviderChart } from '@tenon/provider'
import { nodeGroupKind } from './nodegroup/types.ts'
import { defaultRegion, platformLabels } from './names.ts'
import { cleverNodeClassKind } from './nodeclass/types.ts'

const withoutRefresher = 'prices are not fetched; settings.flavors takes other ones.'

export const chart: ProviderChart = {
  values: [
    {
      name: 'region',
      meaning: 'Region and zone of all nodes.',
      initial: defaultRegion,
      schema: { type: 'string', minLength: 1 },
      to: { kind: 'variable', variable: 'CLEVER_CLOUD_REGION' },
    },
    {
      name: 'flavors',
      meaning:
        'Changes of the built-in flavors and flavors besides them, each with `name` and any of `cpu`, `memoryKi` and `priceHourly`; see docs/clever-cloud/quota-and-cost.md.',
      initial: [],
      schema: {
        type: 'array',
        items: {
          type: 'object',
          required: ['name'],
          additionalProperties: false,
          properties: {
            name: { type: 'string', minLength: 1 },
            cpu: { type: 'integer', minimum: 1 },
            memoryKi: { type: 'integer', minimum: 1 },
            priceHourly: { type: 'number', minimum: 0 },
          },
        },
      },
      to: { kind: 'file', variable: 'FLAVORS_CONFIG_PATH', file: 'flavors.yaml' },
    },
  ],
  rules: [
    {
      apiGroups: [nodeGroupKind.group],
      resources: [nodeGroupKind.plural],
      verbs: ['get', 'list', 'watch', 'create', 'delete'],
    },
    {
      apiGroups: [cleverNodeClassKind.group],
      resources: [cleverNodeClassKind.plural, `${cleverNodeClassKind.plural}/status`],
      verbs: ['patch'],
    },
    // Its changes of nodes (provider IDs) are allowed for every provider.
  ],
  roles: [],
  // Some clusters have no control plane nodes, so it can only be a preference.
  preferredNodes: { [platformLabels.role]: ['control-plane'] },
  takesOver: {
    name: 'karpenter',
    images: 'karpenter-(provider-)?clever-?cloud|(^|/)clever-?cloud/karpenter[^/]*$',
    renamed: {
      'settings.region': 'clever-cloud.region',
      'settings.flavors': 'clever-cloud.flavors',
      'settings.logLevel': 'logLevel',
    },
    ignored: { 'settings.pricing': withoutRefresher },
  },
}
