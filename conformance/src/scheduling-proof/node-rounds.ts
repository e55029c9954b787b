/** Rounds whose constraints concern nodes only: resources, labels, taints, ports. */
import { labels, type NodeSelectorRequirement, type PodSpec } from '@tenon/api'
import { container, item, proofKinds } from './objects.ts'
import { dedicatedTaint, hazardTaint, kwokLabels, proofLabels, zones } from './pools.ts'
import type { Round } from './round.ts'

type Expression = NodeSelectorRequirement

const has = (key: string, ...values: string[]): Expression => ({ key, operator: 'In', values })
const not = (key: string, ...values: string[]): Expression => ({ key, operator: 'NotIn', values })
const above = (key: string, value: number): Expression => ({ key, operator: 'Gt', values: [String(value)] })
const below = (key: string, value: number): Expression => ({ key, operator: 'Lt', values: [String(value)] })

/** Node affinity with one required term per list. */
function requiring(...terms: readonly (readonly Expression[])[]): Partial<PodSpec> {
  const nodeSelectorTerms = terms.map((matchExpressions) => ({ matchExpressions }))
  return {
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  }
}

/** Preferred node affinity with decreasing weights. */
function preferring(...wishes: readonly (readonly Expression[])[]): Partial<PodSpec> {
  return {
    affinity: {
      nodeAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: wishes.map((matchExpressions, index) => ({
          weight: 100 - 10 * index,
          preference: { matchExpressions },
        })),
      },
    },
  }
}

const requests: Round = {
  kind: 'requests',
  items: (make, draw) => [
    ...[3, 5, 2, 8, 4, 6].map((replicas, index) =>
      make.deployment(replicas, { name: `app-${index}`, requests: draw.requests() }),
    ),
    make.pod({ name: 'nothing', requests: {} }),
    make.pod({ name: 'wide', requests: { cpu: '9', memory: '60Gi' } }),
    make.pod({ name: 'huge', requests: { cpu: '40', memory: '100Gi' } }),
    make.pod({ name: 'disk', requests: { cpu: '100m', 'ephemeral-storage': '15Gi' } }),
  ],
}

const nodeSelectors: Round = {
  kind: 'node-selectors',
  items: (make, draw) => {
    const selectors: readonly Readonly<Record<string, string>>[] = [
      { [labels.zone]: zones[1] },
      { [labels.arch]: 'arm64' },
      { [labels.capacityType]: 'spot' },
      { [labels.zone]: zones[3], [kwokLabels.family]: 'm' },
      { [proofLabels.rack]: 'r2' },
      { [labels.nodePool]: 'proof-labelled', [proofLabels.generation]: '5' },
      { [labels.instanceType]: 's-8x-amd64-linux' },
      { [labels.zone]: zones[2], [labels.os]: 'linux' },
    ]
    return selectors.map((nodeSelector, index) =>
      make.deployment(draw.between(2, 4), {
        name: `app-${index}`,
        requests: draw.requests(),
        spec: { nodeSelector },
      }),
    )
  },
}

const nodeAffinity: Round = {
  kind: 'node-affinity',
  items: (make, draw) => {
    const required: readonly Partial<PodSpec>[] = [
      requiring([above(kwokLabels.cpu, 7), not(kwokLabels.family, 'c')]),
      requiring([above(proofLabels.generation, 3), below(proofLabels.generation, 7)]),
      requiring([not(labels.zone, zones[0], zones[2]), below(kwokLabels.cpu, 9)]),
      requiring([has(labels.zone, 'nowhere')], [has(labels.zone, zones[1], zones[2])]),
      requiring([has(proofLabels.rack, 'r9')], [has(labels.arch, 'sparc')], [has(proofLabels.rack, 'r1')]),
      requiring([{ key: proofLabels.generation, operator: 'Exists' }, not(proofLabels.rack, 'r1')]),
      requiring([{ key: proofLabels.team, operator: 'DoesNotExist' }, has(labels.capacityType, 'on-demand')]),
      requiring([not(proofLabels.team, 'red'), not('proof.example/unheard-of', 'x')]),
    ]
    return required.map((spec, index) =>
      make.deployment(draw.between(2, 4), { name: `app-${index}`, requests: draw.requests(), spec }),
    )
  },
}

const preferredAffinity: Round = {
  kind: 'preferred-affinity',
  items: (make, draw) => {
    const preferred: readonly Partial<PodSpec>[] = [
      preferring([has(labels.zone, zones[2])]),
      preferring([has(labels.zone, 'nowhere')], [has(labels.zone, zones[1])]),
      preferring([has(proofLabels.rack, 'r1')], [has(labels.arch, 'arm64')]),
      preferring([above(kwokLabels.cpu, 300)], [has('proof.example/unheard-of', 'x')]),
      { ...preferring([has(labels.zone, zones[0])]), nodeSelector: { [labels.zone]: zones[3] } },
    ]
    return preferred.map((spec, index) =>
      make.deployment(draw.between(2, 4), { name: `app-${index}`, requests: draw.requests(), spec }),
    )
  },
}

const taints: Round = {
  kind: 'taints',
  items: (make, draw) => {
    const { key: dedicated, value, effect } = dedicatedTaint
    const { key: hazard } = hazardTaint
    const specs: readonly Partial<PodSpec>[] = [
      {},
      { tolerations: [{ key: dedicated, operator: 'Equal', ...(value && { value }), effect }] },
      { tolerations: [{ key: dedicated, operator: 'Exists' }] },
      { tolerations: [{ operator: 'Exists' }], nodeSelector: { [proofLabels.team]: 'hazard' } },
      {
        tolerations: [
          { key: dedicated, operator: 'Exists', effect: 'NoSchedule' },
          { key: hazard, operator: 'Equal', value: '7', effect: 'NoExecute' },
        ],
        nodeSelector: { [proofLabels.team]: 'hazard' },
      },
      { tolerations: [{ key: dedicated, value: 'other' }] },
      { nodeSelector: { [proofLabels.team]: 'quiet' } },
    ]
    return specs.map((spec, index) =>
      make.deployment(draw.between(2, 4), { name: `app-${index}`, requests: draw.requests(), spec }),
    )
  },
}

const hostPorts: Round = {
  kind: 'host-ports',
  items: (make, draw) => {
    const listening = (hostPort: number, hostIP?: string, protocol: 'TCP' | 'UDP' = 'TCP') => ({
      containers: [
        {
          ...container('main', { cpu: '500m', memory: '512Mi' }),
          ports: [{ containerPort: 80, hostPort, protocol, ...(hostIP !== undefined && { hostIP }) }],
        },
      ],
    })
    return [
      make.deployment(3, { name: 'anywhere', spec: listening(8080) }),
      make.deployment(2, { name: 'first-address', spec: listening(9090, '10.0.0.1') }),
      make.deployment(2, { name: 'second-address', spec: listening(9090, '10.0.0.2') }),
      make.pod({ name: 'every-address', spec: listening(9090) }),
      make.deployment(2, { name: 'datagrams', spec: listening(8080, undefined, 'UDP') }),
      make.deployment(5, { name: 'without', requests: draw.requests() }),
    ]
  },
}

const podResources: Round = {
  kind: 'pod-resources',
  items: (make, draw) => {
    const main = container('main', { cpu: '1', memory: '1Gi' })
    const init = (cpu: string) => container(`init-${cpu}`, { cpu, memory: '512Mi' })
    const sidecar = (cpu: string) => container('sidecar', { cpu, memory: '256Mi' }, 'Always')
    return [
      item(proofKinds.runtimeClass, {
        apiVersion: 'node.k8s.io/v1',
        kind: 'RuntimeClass',
        metadata: { name: 'scheduling-proof' },
        handler: 'proof',
        overhead: { podFixed: { cpu: '700m', memory: '300Mi' } },
      }),
      make.deployment(2, { name: 'init', spec: { initContainers: [init('3')], containers: [main] } }),
      make.deployment(2, {
        name: 'sidecar-first',
        spec: { initContainers: [sidecar('2'), init('3')], containers: [main] },
      }),
      make.deployment(2, {
        name: 'sidecar-last',
        spec: { initContainers: [init('3'), sidecar('2')], containers: [main] },
      }),
      make.deployment(3, {
        name: 'pod-level',
        spec: { resources: { requests: { cpu: '5', memory: '6Gi' } }, containers: [main] },
      }),
      make.deployment(2, {
        name: 'pod-level-cpu',
        spec: {
          resources: { requests: { cpu: '2' } },
          containers: [main, container('other', { cpu: '500m' })],
        },
      }),
      make.deployment(3, {
        name: 'overhead',
        spec: { runtimeClassName: 'scheduling-proof', containers: [main] },
      }),
      make.deployment(3, { name: 'plain', requests: draw.requests() }),
    ]
  },
}

export const nodeRounds: readonly Round[] = [
  requests,
  nodeSelectors,
  nodeAffinity,
  preferredAffinity,
  taints,
  hostPorts,
  podResources,
]
