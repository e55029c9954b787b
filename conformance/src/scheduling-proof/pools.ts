/** The NodePools of every round: weights, taints, zones, architectures, custom labels. */
import { type NodePool, type Requirement, type Taint, labels } from '@tenon/api'

/** Zones of the KWOK catalogue. */
export const zones = ['test-zone-a', 'test-zone-b', 'test-zone-c', 'test-zone-d'] as const

/** Labels that only these pools set on nodes. */
export const proofLabels = {
  team: 'proof.example/team',
  rack: 'proof.example/rack',
  generation: 'proof.example/generation',
} as const

/** Labels that the KWOK provider sets on nodes. */
export const kwokLabels = {
  cpu: 'karpenter.kwok.sh/instance-cpu',
  family: 'karpenter.kwok.sh/instance-family',
} as const

/** Keeps ordinary pods off the pools that have it. */
export const dedicatedTaint: Taint = { key: 'proof.example/dedicated', value: 'batch', effect: 'NoSchedule' }
/** Like {@link dedicatedTaint}, and evicts. */
export const hazardTaint: Taint = { key: 'proof.example/hazard', value: '7', effect: 'NoExecute' }
/** A soft taint. */
const quietTaint: Taint = { key: 'proof.example/quiet', effect: 'PreferNoSchedule' }

/** Name of the node class of every pool. */
export const nodeClassName = 'scheduling-proof'

const is = (key: string, ...values: string[]): Requirement => ({ key, operator: 'In', values })

interface PoolParts {
  readonly name: string
  readonly weight?: number
  readonly labels?: Readonly<Record<string, string>>
  readonly requirements: readonly Requirement[]
  readonly taints?: readonly Taint[]
}

function pool({ name, weight, taints, requirements, ...more }: PoolParts): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: `proof-${name}` },
    spec: {
      ...(weight !== undefined && { weight }),
      // Launched nodes stay until the round is over.
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: 'Never' },
      template: {
        ...(more.labels && { metadata: { labels: more.labels } }),
        spec: {
          expireAfter: 'Never',
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: nodeClassName },
          requirements: [is(labels.os, 'linux'), ...requirements],
          ...(taints && { taints }),
        },
      },
    },
  }
}

const onDemand = is(labels.capacityType, 'on-demand')
const amd64 = is(labels.arch, 'amd64')

/** The pools of all rounds. */
export const proofPools: readonly NodePool[] = [
  pool({
    name: 'dedicated',
    weight: 80,
    labels: { [proofLabels.team]: 'batch', [proofLabels.rack]: 'r3' },
    requirements: [onDemand, amd64, is(labels.zone, zones[2], zones[3]), is(kwokLabels.cpu, '4', '8', '16')],
    taints: [dedicatedTaint],
  }),
  pool({
    name: 'general',
    weight: 50,
    requirements: [
      onDemand,
      amd64,
      { key: kwokLabels.cpu, operator: 'Gt', values: ['1'] },
      { key: kwokLabels.cpu, operator: 'Lt', values: ['17'] },
    ],
  }),
  pool({
    name: 'labelled',
    weight: 20,
    labels: { [proofLabels.team]: 'red' },
    requirements: [
      onDemand,
      is(proofLabels.rack, 'r1', 'r2'),
      is(proofLabels.generation, '3', '5', '7'),
      is(kwokLabels.cpu, '4', '8'),
    ],
  }),
  pool({
    name: 'hazardous',
    weight: 10,
    labels: { [proofLabels.team]: 'hazard' },
    requirements: [onDemand, amd64, is(kwokLabels.cpu, '4', '8')],
    taints: [dedicatedTaint, hazardTaint],
  }),
  pool({
    name: 'spot',
    requirements: [is(labels.capacityType, 'spot'), { key: kwokLabels.cpu, operator: 'Lt', values: ['65'] }],
  }),
  pool({
    name: 'large',
    requirements: [
      onDemand,
      amd64,
      is(labels.zone, zones[2], zones[3]),
      { key: kwokLabels.cpu, operator: 'Gt', values: ['64'] },
    ],
  }),
  pool({
    name: 'quiet',
    labels: { [proofLabels.team]: 'quiet' },
    requirements: [onDemand, amd64, is(kwokLabels.cpu, '4', '8')],
    taints: [quietTaint],
  }),
]
