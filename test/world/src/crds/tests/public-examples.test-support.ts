/**
 * Manifests in the forms that Exoscale's public documentation shows, former field names included,
 * with an id where a reader has to put one (EXO-13, exoscale.md A17).
 */
import { type CrdCase, type Manifest, manifestStream } from './crd-case.test-support.ts'

const templateID = '3f0c8e3e-3b1a-4a52-9d4e-1c5f5f7a9b10'
const securityGroup = '8a4c2d1e-7f60-4b53-8e2d-9c0b1a2f3e4d'

function nodeClass(name: string, spec: object): Manifest {
  return { apiVersion: 'karpenter.exoscale.com/v1', kind: 'ExoscaleNodeClass', metadata: { name }, spec }
}

interface PoolParts {
  readonly labels: Readonly<Record<string, string>>
  readonly types: readonly string[]
  readonly taints?: readonly object[]
  readonly consolidateAfter: string
  readonly nodes: string
  readonly weight: number
  readonly limits?: object
}

function pool(name: string, parts: PoolParts): Manifest {
  const { labels, types, taints, consolidateAfter, nodes, weight, limits } = parts
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name },
    spec: {
      template: {
        metadata: { labels },
        spec: {
          nodeClassRef: { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name },
          startupTaints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }],
          requirements: [{ key: 'node.kubernetes.io/instance-type', operator: 'In', values: types }],
          ...(taints && { taints }),
          expireAfter: '30m',
        },
      },
      disruption: { consolidationPolicy: 'WhenEmptyOrUnderutilized', consolidateAfter, budgets: [{ nodes }] },
      weight,
      ...(limits && { limits }),
    },
  }
}

const emptyTerms = {
  securityGroupSelectorTerms: [],
  antiAffinityGroupSelectorTerms: [],
  privateNetworkSelectorTerms: [],
}
const gpuTaint = { key: 'nvidia.com/gpu', value: 'true', effect: 'NoSchedule' }
const standardTypes = ['standard.medium', 'standard.large', 'standard.extra-large']

const examples: Readonly<Record<string, Manifest>> = {
  'node class with a template id': nodeClass('standard', { templateID, diskSize: 100, ...emptyTerms }),
  'node class with all commented fields in use': nodeClass('commented', {
    templateID,
    diskSize: 100,
    securityGroupSelectorTerms: [{ id: securityGroup }, { name: 'my-security-group' }],
    antiAffinityGroupSelectorTerms: [{ name: 'my-anti-affinity-group' }],
    privateNetworkSelectorTerms: [{ name: 'my-private-network' }],
    imageGCHighThresholdPercent: 80,
    imageGCLowThresholdPercent: 70,
    imageMinimumGCAge: '5m',
    kubeReserved: { cpu: '100m', memory: '256Mi', ephemeralStorage: '1Gi' },
    systemReserved: { cpu: '100m', memory: '256Mi', ephemeralStorage: '1Gi' },
    nodeLabels: { environment: 'production', team: 'platform' },
    nodeTaints: [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }],
  }),
  'node class for GPUs': nodeClass('gpu', {
    templateID,
    diskSize: 50,
    ...emptyTerms,
    nodeLabels: { 'workload-type': 'gpu', 'nvidia.com/gpu.present': 'true' },
    nodeTaints: [gpuTaint],
  }),
  'node class with a version': nodeClass('standard-latest', {
    imageTemplateSelector: { version: '1.34.1', variant: 'standard' },
    diskSize: 50,
    securityGroupSelectorTerms: [],
    privateNetworkSelectorTerms: [],
  }),
  'node class that follows the control plane': nodeClass('standard-auto', {
    imageTemplateSelector: {},
    diskSize: 50,
    securityGroupSelectorTerms: [],
    privateNetworkSelectorTerms: [],
  }),
  'node class of the announcement, with former group fields': nodeClass('announced', {
    imageTemplateSelector: { version: '1.34.1', variant: 'standard' },
    diskSize: 100,
    securityGroups: [securityGroup],
    antiAffinityGroups: [],
    privateNetworks: [],
  }),
  'standard pool': pool('standard', {
    labels: { nodepool: 'standard' },
    types: standardTypes,
    consolidateAfter: '30m',
    nodes: '10%',
    weight: 50,
  }),
  'GPU pool': pool('gpu', {
    labels: { nodepool: 'gpu', 'workload-type': 'gpu' },
    types: ['gpua30.small', 'gpua30.medium', 'gpua30.large'],
    taints: [gpuTaint],
    consolidateAfter: '1m',
    nodes: '100%',
    weight: 10,
  }),
  'pool of the announcement, with limits': pool('announced', {
    labels: { nodepool: 'standard' },
    types: standardTypes,
    consolidateAfter: '30m',
    nodes: '10%',
    weight: 50,
    limits: { cpu: 1000, memory: '4000Gi' },
  }),
}

/** Each of the manifests, stored with every field it was written with. */
export const publicExamples: readonly CrdCase[] = Object.entries(examples).map(([name, create]) => ({
  name: `EXO-13 public example: ${name}`,
  create,
  stored: Object.fromEntries(
    Object.entries(create['spec'] as object)
      .filter(([field]) => field !== 'imageTemplateSelector')
      .map(([field, value]) => [`spec.${field}`, value]),
  ),
}))

/** The manifests as one stream for `kubectl apply -f -`. */
export const publicExamplesStream: string = manifestStream(Object.values(examples))
