/**
 * The cluster in caches, with the permissions of Cluster Autoscaler's manifests (cluster-autoscaler.md 1.5).
 */
import {
  autoscalingKinds,
  withReadableStatus,
  type ConfigMap,
  kinds,
  type KubeObject,
  type Node,
  type Pod,
  type ResourceType,
  type SelectorLookups,
} from '@tenon/api'
import type { Labels, VolumeIndex } from '@tenon/filters'
import {
  type Cache,
  type CacheRegistry,
  createCache,
  type ReadFields,
  type WatchingKubeClient,
} from '@tenon/kube'
import { perObject, type Runtime, type Transport } from '@tenon/runtime'
import type { ClusterCache, DeviceObjects, PodController } from '../model.ts'
import { usualFields } from './read-fields.ts'
import { readableKinds } from './readable-kinds.ts'
import { followOnceReadable } from './optional-caches.ts'
import { followRequests } from './request-caches.ts'
import { followVolumes, volumeKinds } from './volume-caches.ts'
import { deviceUse } from '../scale-down/nodes/device-use.ts'

/** New and changed objects. */
interface Changes<T> {
  /** Calls `listener` for each new or changed object; returns a function that removes it. */
  onChange(listener: (object: T) => void): () => void
}

export interface ClusterCachesDependencies {
  readonly client: WatchingKubeClient
  /** The client's own transport. */
  readonly transport: Transport
  readonly registry: CacheRegistry
  readonly runtime: Runtime
  /** A ConfigMap to follow, for the priority expander. */
  readonly configMap: { readonly namespace: string; readonly name: string } | undefined
  readonly follows: OptionalKinds
}

/** Kinds that are only followed if needed. */
interface OptionalKinds {
  /** Services define applications for default spread constraints. */
  readonly services: boolean
  /** ProvisioningRequests and PodTemplates. */
  readonly requests: boolean
}

/** A running set of caches. */
export interface ClusterCaches {
  readonly cache: ClusterCache
  readonly podChanges: Changes<Pod>
  readonly nodeChanges: Changes<Node>
  readonly cachedNode: (name: string) => Node | undefined
  /** Requests a new list of the pods. */
  readonly relistPods: (reason: string) => void
  /** Resolves after the first complete list of nodes. */
  nodesListed(signal: AbortSignal): Promise<void>
  /** Resolves after the first complete lists of all kinds. */
  synced(signal: AbortSignal): Promise<void>
  /** Kinds without a first list, for messages. */
  readonly waitingFor: () => readonly string[]
}

type Scaled = KubeObject & { readonly spec?: { readonly replicas?: number } }

const job: ResourceType = {
  group: 'batch',
  version: 'v1',
  kind: 'Job',
  plural: 'jobs',
  namespaced: true,
}

/** The fields of controllers that are read. */
const controllerFields: ReadFields = {
  members: {
    metadata: { members: { managedFields: false, annotations: false }, others: true },
    spec: { members: { replicas: true, selector: true }, others: false },
    status: false,
  },
  others: true,
}
const byNamespace = 'namespace'
/** Without both kinds, devices are not considered. */
const deviceKinds = [kinds.resourceSlice, kinds.resourceClaim] as const

/** Kinds that may not be served or readable. */
const optionalKinds: readonly ResourceType[] = [
  kinds.namespace,
  ...volumeKinds,
  ...deviceKinds,
  kinds.deviceClass,
]

/**
 * Follows the cluster until `signal` aborts.
 * @throws the signal's reason.
 */
export async function openClusterCaches(
  dependencies: ClusterCachesDependencies,
  signal: AbortSignal,
): Promise<ClusterCaches> {
  const { transport, registry, runtime } = dependencies
  const readable = new Set(await readableKinds(optionalKinds, { transport, ...runtime }, signal))
  const pods = registry.cache(kinds.pod, { fields: usualFields })
  const nodes = registry.cache(kinds.node, { fields: usualFields })
  const budgets = registry.cache(kinds.podDisruptionBudget)
  const daemonSets = registry.cache(kinds.daemonSet, { fields: usualFields })
  const replicaSets = scaled(registry, kinds.replicaSet)
  const statefulSets = scaled(registry, kinds.statefulSet)
  const replicationControllers = scaled(registry, kinds.replicationController)
  const controllers = new Map<string, Cache<KubeObject>>([
    ['DaemonSet', daemonSets],
    ['ReplicaSet', replicaSets],
    ['StatefulSet', statefulSets],
    ['ReplicationController', replicationControllers],
    ['Job', scaled(registry, job)],
  ])
  const volumes = followVolumes(registry, readable)
  const devices = followDevices(registry, readable)
  const services = dependencies.follows.services ? followServices(registry) : undefined
  const applications = services && {
    services,
    replicaSet: (namespace: string, name: string) => replicaSets.get({ namespace, name }),
    statefulSet: (namespace: string, name: string) => statefulSets.get({ namespace, name }),
    replicationController: (namespace: string, name: string) =>
      replicationControllers.get({ namespace, name }),
  }
  const requests = dependencies.follows.requests ? await followRequests(dependencies, signal) : undefined
  const quotas = await followOnceReadable(
    [autoscalingKinds.capacityQuota] as const,
    dependencies,
    () => {
      runtime.logger.info('CapacityQuotas cannot be read and are not enforced; asked again every minute')
    },
    signal,
    { areLimits: true },
  )
  // The same object for the same quota.
  const readQuotaStatus = perObject(withReadableStatus)
  const namespaces = readable.has(kinds.namespace) ? registry.cache(kinds.namespace) : undefined
  const configMaps = followConfigMap(dependencies, signal)
  registry.start(signal)
  return {
    cache: {
      nodes: () => nodes.list(),
      pods: () => pods.list(),
      namespaces: () => labelsOf(namespaces),
      volumes: (): VolumeIndex => volumes,
      configMap: (namespace, name) => configMaps?.get({ namespace, name }),
      controllerOf: (kind, namespace, name) => controllerOf(controllers.get(kind)?.get({ namespace, name })),
      get disruptionBudgets() {
        return budgets.list()
      },
      get daemonSets() {
        return daemonSets.list()
      },
      get deviceUse() {
        const { slices = [], claims = [] } = devices() ?? {}
        return deviceUse(slices, claims)
      },
      devices,
      applications,
      get requests() {
        return requests?.()
      },
      get quotas() {
        return quotas()?.[0].list().map(readQuotaStatus)
      },
    },
    podChanges: changesOf(pods),
    nodeChanges: changesOf(nodes),
    cachedNode: (name) => nodes.get({ name }),
    relistPods: (reason) => {
      pods.relist(reason)
    },
    nodesListed: (until) => nodes.synced(until),
    synced: (until) => registry.synced(until),
    waitingFor: () => registry.waitingFor,
  }
}

function changesOf<T extends KubeObject>(cache: Cache<T>): Changes<T> {
  return {
    onChange: (listener) =>
      cache.onChange(({ kind, object }) => {
        if (kind !== 'deleted') listener(object)
      }),
  }
}

function scaled<T extends KubeObject>(registry: CacheRegistry, type: ResourceType<T>): Cache<T> {
  return registry.cache(type, { fields: controllerFields })
}

function controllerOf(object: KubeObject | undefined): PodController | undefined {
  if (object === undefined) return undefined
  const { replicas } = (object as Scaled).spec ?? {}
  return replicas === undefined ? {} : { replicas }
}

function labelsOf(namespaces: Cache<KubeObject> | undefined): ReadonlyMap<string, Labels> {
  return new Map((namespaces?.list() ?? []).map(({ metadata: { name, labels = {} } }) => [name, labels]))
}

/** Services by namespace. */
function followServices(registry: CacheRegistry): SelectorLookups['services'] {
  const services = registry.cache(kinds.service, { fields: usualFields })
  services.addIndex(byNamespace, ({ metadata }) => [metadata.namespace ?? ''])
  return (namespace) => services.byIndex(byNamespace, namespace)
}

/** A single ConfigMap, as those of other namespaces may be forbidden. Nothing waits for it. */
function followConfigMap(
  { client, runtime, configMap }: ClusterCachesDependencies,
  signal: AbortSignal,
): Cache<ConfigMap> | undefined {
  if (configMap === undefined) return undefined
  const { namespace, name } = configMap
  const fieldSelector = `metadata.name=${name}`
  const cache = createCache(client, kinds.configMap, { ...runtime, namespace, fieldSelector })
  cache.start(signal)
  return cache
}

/** Follows slices and claims if both can be read, and classes if these can be, too. */
function followDevices(
  registry: CacheRegistry,
  readable: ReadonlySet<ResourceType>,
): () => DeviceObjects | undefined {
  if (!deviceKinds.every((kind) => readable.has(kind))) return () => undefined
  const slices = registry.cache(kinds.resourceSlice, { fields: usualFields })
  const claims = registry.cache(kinds.resourceClaim, { fields: usualFields })
  const classes = readable.has(kinds.deviceClass)
    ? registry.cache(kinds.deviceClass, { fields: usualFields })
    : undefined
  return () => ({ slices: slices.list(), claims: claims.list(), classes: classes?.list() })
}
