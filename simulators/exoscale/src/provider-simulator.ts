/** The simulated Exoscale cloud for `tenon up` and `tenon devcluster`. */
import { kinds } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import type { ProviderSimulator, SimulatedProvider } from '@tenon/provider'
import { Secret } from '@tenon/runtime'
import type { Exoscale } from './exoscale.ts'
import {
  demonstration,
  nodeGroupDemonstration,
  tourGpuPool,
  tourNodeClass,
  tourNodePool,
} from './zone/manifests.ts'
import { pricePerHour } from './zone/catalogue.ts'
import type { ExoscaleSettings } from './settings.ts'
import { exoscaleSimulator } from './simulator.ts'
import type { ExoscaleSeed } from './zone/world.ts'

/** Fixed names of the simulated organisation; nothing here is secret. */
const organisation = {
  zone: 'ch-gva-2',
  clusterId: 'f1b5a3c2-6d0e-4c57-9a8b-2f4e6d8c0a11',
  key: 'EXOtenon0000000000000000001',
  secret: 'simulated-secret-of-the-embedded-cluster',
} as const

/** What the manifests in `examples/exoscale` refer to by name or id. */
const exampleResources = {
  securityGroups: [{ name: 'sks-nodes' }],
  antiAffinityGroups: [{ name: 'spread-hypervisors' }],
  privateNetworks: [{ name: 'backend' }],
  templates: [
    { id: '20000000-0000-4000-8000-000000000001', version: '1.34.0', variant: 'standard' as const },
  ],
}

/**
 * Short delays for demonstrations. Booting still takes longer than the 3 s poll of operations, so that the Node is
 * created before the instance joins.
 */
const hurried: Partial<ExoscaleSettings> = {
  operationDelay: { minMs: 800, maxMs: 1500 },
  bootDelay: { minMs: 4500, maxMs: 6000 },
}

/** A nodepool of the SKS cluster, and an Instance Pool besides it. */
const nodeGroupResources = {
  nodepools: [{ name: 'workers', type: 'standard.large', size: 1, prefix: 'workers', joins: true }],
  instancePools: [{ name: 'batch', type: 'standard.extra-large', size: 1, prefix: 'batch', joins: true }],
} as const satisfies ExoscaleSeed

/** A zone with an SKS cluster, and the credentials of its owner. */
export const simulator: ProviderSimulator = {
  cloud: ({ bootDelayMs, isHurried = false, hasNodeGroups = false }) => {
    const zone = exoscaleSimulator({
      ...organisation,
      secret: new Secret(organisation.secret),
      settings: {
        gpuDriver: true,
        ...(isHurried && hurried),
        ...(bootDelayMs !== undefined && { bootDelay: { minMs: bootDelayMs, maxMs: bootDelayMs } }),
      },
    })
    return {
      ...zone,
      start: (parts) => {
        const cloud = zone.start(parts)
        cloud.add(exampleResources)
        if (hasNodeGroups) cloud.add(nodeGroupResources)
        removeLostInstances(parts.api.as('kubectl'), cloud)
        return simulatedProvider(cloud)
      },
    }
  },
  settings: ({ apiUrl, cloudUrl = '' }) => ({
    EXOSCALE_API_ENDPOINT: cloudUrl,
    EXOSCALE_ZONE: organisation.zone,
    EXOSCALE_SKS_CLUSTER_ID: organisation.clusterId,
    EXOSCALE_API_KEY: organisation.key,
    EXOSCALE_API_SECRET: organisation.secret,
    CLUSTER_ENDPOINT: apiUrl,
    EXOSCALE_GPU_DEVICES: 'nvidia',
  }),
  demonstration,
  nodeGroups: { specs: ['1:6:workers', '1:4:batch'], demonstration: nodeGroupDemonstration },
  tour: {
    cluster: 'SKS cluster',
    nodeClass: tourNodeClass,
    nodePool: tourNodePool,
    whyReady: "the image of the control plane's version and security group sks-nodes were found",
    smallType: 'standard.medium',
    smallInstances: 3,
    priceOf,
    gpu: { manifests: tourGpuPool, families: 'gpua30 and gpu3' },
    readOn: 'docs/exoscale/',
  },
}

function simulatedProvider(cloud: Exoscale): SimulatedProvider {
  return {
    api: { path: '/v2', handle: cloud.handle, announce: (url) => cloud.setBaseUrl(url) },
    instances: () => cloud.instances(),
    stop: () => cloud.stop(),
  }
}

function priceOf(instanceType: string): number | undefined {
  const [family = '', size = ''] = instanceType.split('.')
  return pricePerHour(family, size)
}

/**
 * Removes at once the Nodes, with their pods, whose instances an earlier run did not store. Kubernetes would do the
 * same, but only after minutes, as an instance might come back; these never do.
 */
function removeLostInstances(api: LocalApi, cloud: Exoscale): void {
  const alive = new Set(cloud.instances().map(({ id }) => `exoscale://${id}`))
  const lost = new Set<string>()
  for (const { metadata, spec } of api.list(kinds.node)) {
    const providerID = spec?.providerID ?? ''
    if (!providerID.startsWith('exoscale://') || alive.has(providerID)) continue
    lost.add(metadata.name)
    if ((metadata.finalizers ?? []).length > 0)
      api.patch(kinds.node, undefined, metadata.name, { metadata: { finalizers: null } })
    if (api.get(kinds.node, undefined, metadata.name) !== undefined)
      api.delete(kinds.node, undefined, metadata.name)
  }
  for (const { metadata, spec } of api.list(kinds.pod)) {
    if (lost.has(spec.nodeName ?? ''))
      api.delete(kinds.pod, metadata.namespace, metadata.name, { gracePeriodSeconds: 0 })
  }
}
