/** Small clusters to play. */
import {
  capacityTypes,
  type InstanceType,
  type KubeObject,
  labels,
  type NodePool,
  type Pod,
  type Requirement,
} from '@tenon/api'
import type { Catalogue } from './catalogue.ts'
import type { PlayOptions } from './play.ts'
import { defaultSettings } from '@tenon/operator'

export const startMs = Date.UTC(2026, 0, 1)
export const minuteMs = 60_000
export const hourMs = 60 * minuteMs

/** A type of `cores`, at 0.05 for each of them. */
function aType(cores: number): InstanceType {
  const is = (key: string, value: string): Requirement => ({ key, operator: 'In', values: [value] })
  const offered = [is(labels.zone, 'zone-a'), is(labels.capacityType, capacityTypes.onDemand)]
  const name = `m.${cores}`
  return {
    name,
    requirements: [
      is(labels.instanceType, name),
      is(labels.arch, 'amd64'),
      is(labels.os, 'linux'),
      ...offered,
    ],
    offerings: [{ requirements: offered, pricePerHour: cores * 0.05, available: true }],
    capacity: { cpu: cores * 1000, memory: cores * 4 * 1024 ** 3, pods: 110 },
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
  }
}

const aCatalogue: Catalogue = { byNodePool: new Map(), others: [2, 4, 8, 16].map(aType) }

export function aPool(disruption: NodePool['spec']['disruption'] = { consolidateAfter: '1m' }): NodePool {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: { name: 'default', uid: 'pool-default', generation: 1 },
    spec: {
      template: {
        spec: {
          nodeClassRef: { group: 'example.com', kind: 'ExampleNodeClass', name: 'default' },
          requirements: [],
          expireAfter: 'Never',
        },
      },
      disruption: { budgets: [{ nodes: '100%' }], ...disruption },
    },
  }
}

/** A pod of the ReplicaSet `app`. */
export function aPod(name: string, app: string, cpu: string): Pod {
  const uid = `replicaset-${app}`
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      labels: { app },
      ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: app, uid, controller: true }],
    },
    spec: {
      containers: [{ name: 'app', image: 'app', resources: { requests: { cpu, memory: '1Gi' } } }],
    },
  }
}

/** The ReplicaSet `app`. */
export function aReplicaSet(app: string): KubeObject {
  const object = {
    apiVersion: 'apps/v1',
    kind: 'ReplicaSet',
    metadata: { name: app, namespace: 'default', uid: `replicaset-${app}`, generation: 1 },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: { containers: [] } },
    },
  }
  return object
}

export function options(objects: readonly KubeObject[], more: Partial<PlayOptions> = {}): PlayOptions {
  return { objects, catalogue: aCatalogue, settings: defaultSettings, seed: 1, startMs, ...more }
}
