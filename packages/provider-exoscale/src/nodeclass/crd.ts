/** The CustomResourceDefinition of ExoscaleNodeClass. */
import {
  conditionsSchema,
  crd,
  type CrdSchema,
  integerSchema,
  listSchema,
  objectSchema,
  textSchema,
} from '@tenon/api'
import { kubeletDefaults } from './kubelet-defaults.ts'
import { defaultDiskSizeGib } from './settings.ts'
import { exoscaleNodeClassKind } from './types.ts'

const uuidPattern = '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
const cpuPattern = '^(\\d+(m|[.])?(\\d+)?|\\d+m)$'
const bytesPattern = '^(\\d+(Ki|Mi|Gi|Ti|Pi|Ei|k|M|G|T|P|E)?)$'

function selectorTerms(what: string, maxItems: number): CrdSchema {
  return listSchema(
    `Which ${what} the instances get; each term names one.`,
    objectSchema(
      `One of the ${what}, by id or by name.`,
      {
        id: textSchema('Id in the zone of the cluster.', { minLength: 1 }),
        name: textSchema('Exact name, upper and lower case matter.', { minLength: 1 }),
      },
      {
        'x-kubernetes-validations': [
          { rule: 'has(self.id) != has(self.name)', message: 'give exactly one of id and name' },
        ],
      },
    ),
    { maxItems },
  )
}

function formerIds(what: string, replacement: string, maxItems?: number): CrdSchema {
  return listSchema(
    `Deprecated, use ${replacement}. Ids of ${what}, put before those of ${replacement}.`,
    { type: 'string' },
    maxItems === undefined ? {} : { maxItems },
  )
}

function reservation(
  what: string,
  defaults: { cpu: string; memory: string; ephemeralStorage: string },
): CrdSchema {
  return objectSchema(
    `Resources kept back for ${what}.`,
    {
      cpu: textSchema('Processor time.', { default: defaults.cpu, pattern: cpuPattern }),
      memory: textSchema('Memory.', { default: defaults.memory, pattern: bytesPattern }),
      ephemeralStorage: textSchema('Space on the root disk.', {
        default: defaults.ephemeralStorage,
        pattern: bytesPattern,
      }),
    },
    { default: {} },
  )
}

function kubelet(): CrdSchema {
  const { kubeReserved, systemReserved, ...defaults } = kubeletDefaults
  return objectSchema(
    'Settings of the kubelet on new instances.',
    {
      clusterDNS: listSchema(
        'Addresses of the cluster DNS service.',
        { type: 'string' },
        {
          default: defaults.clusterDNS,
        },
      ),
      imageGCHighThresholdPercent: integerSchema(
        'Disk use, in percent, at which unused images are always removed.',
        {
          format: 'int32',
          minimum: 0,
          maximum: 100,
          default: defaults.imageGCHighThresholdPercent,
        },
      ),
      imageGCLowThresholdPercent: integerSchema('Disk use, in percent, below which no image is removed.', {
        format: 'int32',
        minimum: 0,
        maximum: 100,
        default: defaults.imageGCLowThresholdPercent,
      }),
      imageMinimumGCAge: textSchema('How long an unused image is kept at least: a number and s, m or h.', {
        default: defaults.imageMinimumGCAge,
        pattern: '^[0-9]+(s|m|h)$',
      }),
      kubeReserved: reservation('the kubelet and the container runtime', kubeReserved),
      systemReserved: reservation('the operating system', systemReserved),
      featureGates: {
        type: 'object',
        description: 'Feature gates of the kubelet.',
        additionalProperties: { type: 'boolean' },
      },
    },
    { default: {} },
  )
}

/** Fields of the first releases. Any value is accepted, so that old manifests still apply. */
function removedFields(): Readonly<Record<string, CrdSchema>> {
  const moved = (field: string) =>
    `Deprecated, use kubelet.${field}. Counts where kubelet says nothing else than its default.`
  const given = (what: string, where: string) =>
    `Deprecated, use the ${what} of the NodePool template (${where}). Nodes get those ${what} that their NodePool does not set.`
  const free = { 'x-kubernetes-preserve-unknown-fields': true } as const
  return {
    imageGCHighThresholdPercent: {
      description: moved('imageGCHighThresholdPercent'),
      'x-kubernetes-int-or-string': true,
    },
    imageGCLowThresholdPercent: {
      description: moved('imageGCLowThresholdPercent'),
      'x-kubernetes-int-or-string': true,
    },
    imageMinimumGCAge: {
      description: moved('imageMinimumGCAge'),
      'x-kubernetes-int-or-string': true,
    },
    kubeReserved: { type: 'object', description: moved('kubeReserved'), ...free },
    systemReserved: { type: 'object', description: moved('systemReserved'), ...free },
    nodeLabels: { type: 'object', description: given('labels', 'spec.template.metadata.labels'), ...free },
    nodeTaints: {
      type: 'array',
      description: given('taints', 'spec.template.spec.taints'),
      items: { type: 'object', ...free },
    },
  }
}

function spec(): CrdSchema {
  return objectSchema(
    'How instances are made.',
    {
      templateID: textSchema('Id of the template the root disk is made from.', { pattern: uuidPattern }),
      imageTemplateSelector: objectSchema('Chooses the SKS template by version and variant.', {
        version: textSchema(
          'Kubernetes version, for example 1.34.1; that of the control plane when absent.',
          {
            pattern: '^[0-9]+\\.[0-9]+\\.[0-9]+$',
          },
        ),
        variant: textSchema('nvidia for GPU instances, else standard.', {
          default: 'standard',
          enum: ['standard', 'nvidia'],
        }),
      }),
      diskSize: integerSchema('Size of the root disk in GiB.', {
        format: 'int64',
        minimum: 10,
        maximum: 8000,
        default: defaultDiskSizeGib,
      }),
      securityGroupSelectorTerms: selectorTerms('security groups', 50),
      antiAffinityGroupSelectorTerms: selectorTerms('anti-affinity groups', 50),
      privateNetworkSelectorTerms: selectorTerms('private networks', 10),
      securityGroups: formerIds('security groups', 'securityGroupSelectorTerms', 50),
      antiAffinityGroups: formerIds('anti-affinity groups', 'antiAffinityGroupSelectorTerms'),
      privateNetworks: formerIds('private networks', 'privateNetworkSelectorTerms', 10),
      kubelet: kubelet(),
      ...removedFields(),
    },
    {
      'x-kubernetes-validations': [
        {
          rule: 'has(self.templateID) != has(self.imageTemplateSelector)',
          message: 'give exactly one of templateID and imageTemplateSelector',
        },
        {
          rule: '!has(self.kubelet) || !has(self.kubelet.imageGCLowThresholdPercent) || !has(self.kubelet.imageGCHighThresholdPercent) || self.kubelet.imageGCLowThresholdPercent < self.kubelet.imageGCHighThresholdPercent',
          message: 'kubelet.imageGCLowThresholdPercent must be below kubelet.imageGCHighThresholdPercent',
        },
      ],
    },
  )
}

/** The CRD as a plain object, to be created or printed. */
export function exoscaleNodeClassCrd(): Readonly<Record<string, unknown>> {
  const ids = (what: string) => listSchema(`Ids of the ${what} found.`, { type: 'string' })
  return crd({
    ...exoscaleNodeClassKind,
    categories: ['karpenter'],
    columns: [
      { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ],
    description: 'Configures the Exoscale instances that NodePools launch.',
    spec: spec(),
    status: objectSchema('What was found.', {
      conditions: conditionsSchema(),
      securityGroups: ids('security groups'),
      antiAffinityGroups: ids('anti-affinity groups'),
      privateNetworks: ids('private networks'),
    }),
  })
}
