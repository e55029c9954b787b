/** A fleet as the Go provider for Clever Cloud leaves it, of release 0.11.0 and of the later generation. */
import {
  annotations,
  type Condition,
  labels,
  type NodeClaim,
  nodeClassLabel,
  nodePoolHash,
  nodePoolHashVersion,
  type NodePool,
} from '@tenon/api'
import { type CleverNodeClass, type NodeGroup, ownNames, platformLabels } from '@tenon/provider-clever-cloud'
import { rfc3339 } from '@tenon/runtime'
import { aPool } from './stage.test-support.ts'

const finalizer = 'karpenter.sh/termination'

/** How an instance of the fleet was made. */
export interface Instance {
  readonly name: string
  readonly generation: '0.11.0' | 'later'
  readonly flavor: '2XS' | 'XS'
}

/** Instances of both generations. */
export const instances: readonly Instance[] = [
  { name: 'default-aaaaa', generation: '0.11.0', flavor: '2XS' },
  { name: 'default-bbbbb', generation: '0.11.0', flavor: 'XS' },
  { name: 'default-ccccc', generation: 'later', flavor: '2XS' },
]

/** As its examples have it: with an empty map of labels. */
export function recordedNodeClass(nowMs: number): {
  readonly object: CleverNodeClass
  readonly status: object
} {
  const holds = (type: string): Condition => conditionOf(type, nowMs)
  return {
    object: {
      apiVersion: 'karpenter.clever-cloud.com/v1alpha1',
      kind: 'CleverNodeClass',
      metadata: { name: 'default', finalizers: [ownNames.termination] },
      spec: { labels: {} },
    },
    status: { conditions: ['NodeGroupAPIServed', 'ValidationSucceeded', 'Ready'].map(holds) },
  }
}

/** The NodePool, which does not bear its hash yet. */
export function recordedPool(): NodePool {
  return aPool(['2XS', 'XS', 'S', 'M'], {
    disruption: { consolidationPolicy: 'WhenEmptyOrUnderutilized', consolidateAfter: '30s' },
  })
}

/** The hash of a NodePool as it is stored, defaults included; its claims bear the same. */
export function hashOf(pool: NodePool): Readonly<Record<string, string>> {
  return {
    [annotations.nodePoolHash]: nodePoolHash(pool),
    [annotations.nodePoolHashVersion]: nodePoolHashVersion,
  }
}

/** The claim; what belongs to its status is given apart, because it is written apart. */
export function recordedClaim(
  { name, flavor, generation }: Instance,
  pool: NodePool,
  nowMs: number,
): { readonly object: NodeClaim; readonly status: NonNullable<NodeClaim['status']> } {
  const { nodeClassRef } = pool.spec.template.spec
  const memory = generation === 'later' ? laterMemory[flavor] : firstMemory[flavor]
  return {
    object: {
      apiVersion: 'karpenter.sh/v1',
      kind: 'NodeClaim',
      metadata: {
        name,
        finalizers: [finalizer],
        labels: {
          ...nodeLabels(flavor),
          [labels.nodePool]: pool.metadata.name,
          [nodeClassLabel(nodeClassRef)]: nodeClassRef.name,
        },
        annotations: { ...hashOf(pool), 'karpenter.sh/nodeclaim-min-values-relaxed': 'false' },
        ownerReferences: [
          {
            apiVersion: 'karpenter.sh/v1',
            kind: 'NodePool',
            name: pool.metadata.name,
            uid: pool.metadata.uid ?? '',
            blockOwnerDeletion: true,
          },
        ],
      },
      spec: {
        nodeClassRef,
        expireAfter: '720h',
        requirements: [
          { key: labels.instanceType, operator: 'In', values: [flavor] },
          { key: labels.nodePool, operator: 'In', values: [pool.metadata.name] },
        ],
        resources: { requests: { cpu: '1', memory: '1Gi', pods: '2' } },
      },
    },
    status: {
      providerID: `clevercloud://${name}`,
      nodeName: `${name}-node0`,
      capacity: { cpu: cpus[flavor], memory: `${memory}Ki`, 'ephemeral-storage': '40971488Ki', pods: '110' },
      allocatable: {
        cpu: cpus[flavor],
        memory: `${memory - 102_400}Ki`,
        'ephemeral-storage': '36874339Ki',
        pods: '110',
      },
      conditions: ['Launched', 'Registered', 'Initialized', 'Ready'].map((type) => conditionOf(type, nowMs)),
    },
  }
}

/** The NodeGroup of a claim. The first generation lets labels of Karpenter into it. */
export function recordedGroup({ name, flavor, generation }: Instance, claim: NodeClaim): NodeGroup {
  const isLater = generation === 'later'
  return {
    apiVersion: 'api.clever-cloud.com/v1',
    kind: 'NodeGroup',
    metadata: {
      name,
      labels: {
        [ownNames.managed]: 'true',
        [ownNames.nodeClaim]: name,
        [ownNames.nodePool]: 'default',
        [ownNames.nodeClass]: 'default',
      },
      annotations: isLater
        ? { [ownNames.hash]: '1234567890123456789', [ownNames.hashVersion]: 'v2' }
        : { [ownNames.hash]: '14514438007709706818' },
      ownerReferences: [
        { apiVersion: 'karpenter.sh/v1', kind: 'NodeClaim', name, uid: claim.metadata.uid ?? '' },
      ],
    },
    spec: {
      flavor,
      nodeCount: 1,
      labels: isLater ? {} : { [labels.nodePool]: 'default', 'karpenter.sh/capacity-type': 'on-demand' },
      taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }],
    },
  }
}

/** What the Go provider writes into a node once it has registered. */
export function registration({ name, flavor }: Instance, claim: NodeClaim): object {
  return {
    metadata: {
      finalizers: [finalizer],
      labels: {
        ...nodeLabels(flavor),
        [labels.nodePool]: 'default',
        [nodeClassLabel(claim.spec.nodeClassRef)]: claim.spec.nodeClassRef.name,
        'karpenter.sh/registered': 'true',
        'karpenter.sh/initialized': 'true',
      },
      annotations: claim.metadata.annotations ?? {},
      ownerReferences: [
        {
          apiVersion: 'karpenter.sh/v1',
          kind: 'NodeClaim',
          name,
          uid: claim.metadata.uid ?? '',
          blockOwnerDeletion: true,
        },
      ],
    },
    spec: { providerID: `clevercloud://${name}`, taints: null },
  }
}

const cpus = { '2XS': '4', XS: '6' } as const
const firstMemory = { '2XS': 3_911_884, XS: 7_937_580 } as const
const laterMemory = { '2XS': 3_715_344, XS: 7_553_664 } as const

function nodeLabels(flavor: Instance['flavor']): Readonly<Record<string, string>> {
  return {
    [labels.instanceType]: flavor,
    [labels.arch]: 'amd64',
    [labels.os]: 'linux',
    [labels.zone]: 'par',
    [labels.capacityType]: 'on-demand',
    [platformLabels.flavor]: flavor,
    [platformLabels.role]: 'worker',
    [ownNames.instanceCpu]: cpus[flavor],
    [ownNames.instanceMemory]: String(firstMemory[flavor]),
  }
}

function conditionOf(type: string, nowMs: number): Condition {
  const lastTransitionTime = rfc3339(nowMs - 3_600_000)
  return { type, status: 'True', reason: type, message: '', lastTransitionTime, observedGeneration: 1 }
}
