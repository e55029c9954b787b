/** What KWOK adds to the chart. */
import type { ProviderChart } from '@tenon/provider'

export const chart: ProviderChart = {
  values: [
    {
      name: 'instanceTypes',
      meaning:
        "Instance types in place of the built-in ones: JSON text in the form of KWOK's instance-type file.",
      initial: '',
      to: { kind: 'file', variable: 'INSTANCE_TYPES_FILE_PATH', file: 'instance-types.json' },
    },
    {
      name: 'partitions',
      meaning: 'Names of the kwok controllers; each node goes to one of them.',
      initial: ['a'],
      schema: {
        type: 'array',
        minItems: 1,
        uniqueItems: true,
        items: { type: 'string', pattern: '^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$' },
      },
      to: { kind: 'variable', variable: 'KWOK_PARTITIONS' },
    },
  ],
  rules: [
    // An instance is a Node.
    { apiGroups: [''], resources: ['nodes'], verbs: ['create'] },
    // Simulated drivers publish the devices of types that have some.
    { apiGroups: ['resource.k8s.io'], resources: ['resourceslices'], verbs: ['create', 'delete'] },
  ],
  roles: [],
  note: 'The nodes of this provider are simulated: pods on them never run. Set `provider` for real ones.',
}
