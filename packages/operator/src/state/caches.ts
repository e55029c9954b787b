import {
  autoscalingKinds,
  type CapacityBuffer,
  type CapacityQuota,
  type ConfigMap,
  consumedBy,
  type CsiDriver,
  type CsiNode,
  type CsiStorageCapacity,
  type DaemonSet,
  type Deployment,
  type DeviceClass,
  deviceTaintRuleKinds,
  type DeviceTaintRule,
  karpenterKinds,
  kinds,
  type KubeObject,
  type LimitRange,
  type Namespace,
  type Node,
  type NodeClaim,
  type NodeClass,
  type NodeOverlay,
  type NodePool,
  type ObjectMeta,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type PodDisruptionBudget,
  type PodTemplate,
  type ReplicationController,
  type ResourceClaim,
  type ResourceSlice,
  type ResourceType,
  type SelectingWorkload,
  type Service,
  type StorageClass,
  storageClassNameOf,
  type VolumeAttachment,
  withReadableStatus,
} from '@tenon/api'
import { claimedVolumes } from '@tenon/engine'
import type { Cache, CacheRegistry } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { brakeName } from './pause.ts'
import { isAwaited } from './pods/budget-outlook.ts'
import { groupsOfClaim } from './pods/group-of-pod.ts'
import { policyOf, type Settings } from '../settings.ts'
import {
  daemonSetFields,
  deploymentFields,
  keptDeployment,
  keptNode,
  keptObject,
  nodeFields,
  objectFields,
  writtenFields,
  podFields,
  podTemplateFields,
  PodTrimmer,
} from './kept-fields.ts'
import {
  readable,
  type Reading,
  standInByName,
  standInForAttachment,
  standInForBudget,
  standInForClaim,
  standInForNode,
  standInForNodeClass,
  standInForGroup,
  standInForPool,
  withoutNulls,
} from './readable.ts'

/** Watched copies of everything the operator reads, with indexes. */
export interface Caches {
  readonly pods: Cache<Pod>
  readonly nodes: Cache<Node>
  readonly nodeClaims: Cache<NodeClaim>
  readonly nodePools: Cache<NodePool>
  readonly namespaces: Cache<Namespace>
  readonly daemonSets: Cache<DaemonSet>
  /** Only with `surgeOnDrain`; without rights it stays empty. */
  readonly deployments?: Cache<Deployment>
  readonly limitRanges: Cache<LimitRange>
  readonly podDisruptionBudgets: Cache<PodDisruptionBudget>
  readonly volumeAttachments: Cache<VolumeAttachment>
  readonly persistentVolumeClaims: Cache<PersistentVolumeClaim>
  readonly persistentVolumes: Cache<PersistentVolume>
  readonly storageClasses: Cache<StorageClass>
  readonly csiNodes: Cache<CsiNode>
  /** Not in compatibility mode, as Karpenter does not read it; without rights it stays empty. */
  readonly csiDrivers?: Cache<CsiDriver>
  readonly csiStorageCapacities?: Cache<CsiStorageCapacity>
  readonly nodeClasses: readonly Cache<NodeClass>[]
  /** The ConfigMap `tenon-brake`; undefined if the namespace of the controller is unknown. */
  readonly brakeConfigMaps?: Cache<ConfigMap>
  /** Only with the feature gate. */
  readonly nodeOverlays?: Cache<NodeOverlay>
  /** Only with the feature gate. */
  readonly buffers?: BufferCaches
  /** Undefined in the compatibility mode; empty where the kind is not served or not readable. */
  readonly capacityQuotas?: Cache<CapacityQuota>
  /** Undefined if pods with resource claims are ignored. */
  readonly resourceSlices?: Cache<ResourceSlice>
  readonly resourceClaims?: Cache<ResourceClaim>
  readonly deviceClasses?: Cache<DeviceClass>
  /** One cache a version; most servers have neither. */
  readonly deviceTaintRules?: Cache<DeviceTaintRule>
  readonly deviceTaintRulesBeta?: Cache<DeviceTaintRule>
  /** Only with the feature gate. Caches are opened once a kind is known to be served. */
  readonly groupKinds?: GroupKinds
  /** Only with a default spread. */
  readonly applications?: ApplicationCaches
}

/** Optional caches: the kind may not be served, or not be readable. */
export interface BufferCaches {
  readonly capacityBuffers: Cache<CapacityBuffer>
  readonly podTemplates: Cache<PodTemplate>
}

/** Opens the cache of a kind of groups (gangs.md 7.1). */
export interface GroupKinds {
  open<T extends KubeObject>(type: ResourceType<T>): Cache<T>
  /** Pod templates of ProvisioningRequests. */
  openPodTemplates(): Cache<PodTemplate>
}

/** Objects whose selectors define which pods are one application. */
export interface ApplicationCaches {
  readonly services: Cache<Service>
  readonly replicationControllers: Cache<ReplicationController>
  readonly replicaSets: Cache<SelectingWorkload>
  readonly statefulSets: Cache<SelectingWorkload>
}

export const indexes = {
  byNode: 'node',
  byProviderId: 'providerID',
  byOwner: 'owner',
  byNodePool: 'nodePool',
  byNamespace: 'namespace',
  /** Pods that PDBs may wait for, by namespace; not in the compatibility mode. */
  unready: 'unready',
  byVolumeClaim: 'volumeClaim',
  byStorageClass: 'storageClass',
  byPodGroup: 'podGroup',
  byProvisioningRequest: 'provisioningRequest',
} as const

/** Is told of each state of a NodeClaim or NodePool, with its managed fields, and of what is kept of it and was before. */
type Writing = (
  kind: string,
  object: NodeClaim | NodePool,
  kept: NodeClaim | NodePool,
  before: object | undefined,
) => void

/** Most changes are changes of pods, and the batch window is much longer than this. */
const podGatherMs = 50

/**
 * Takes the operator's caches from the registry, which starts each of them once.
 * @param onRead called for every object except pods, as it enters.
 * @param onWritten absent if nobody asks who writes NodeClaims and NodePools.
 */
export function openCaches(
  registry: Pick<CacheRegistry, 'cache'>,
  provider: Pick<CloudProvider, 'nodeClasses'>,
  settings: Pick<
    Settings,
    | 'brakeNamespace'
    | 'compatibility'
    | 'defaultSpread'
    | 'featureGates'
    | 'ignoreDraRequests'
    | 'surgeOnDrain'
  >,
  onRead: Reading = () => undefined,
  onWritten?: Writing,
): Caches {
  const trimmer = new PodTrimmer()
  const trimmed = <T extends KubeObject>(
    type: ResourceType<T>,
    standIn?: (object: T) => T | undefined,
  ): Cache<T> =>
    registry.cache(type, {
      transform: readable(type.kind, keptObject<T>, onRead, standIn),
      fields: objectFields,
    })
  const watched = <T extends NodeClaim | NodePool>(
    type: ResourceType<T>,
    standIn: (object: T) => T | undefined,
  ): Cache<T> =>
    onWritten === undefined
      ? trimmed(type, standIn)
      : writtenCache(registry, type, readable(type.kind, keptObject<T>, onRead, standIn), onWritten)
  const podTemplates = () =>
    registry.cache(kinds.podTemplate, {
      transform: readable(kinds.podTemplate.kind, trimmer.podTemplate, onRead),
      fields: podTemplateFields,
      isOptional: true,
    })
  const caches: Caches = {
    pods: registry.cache(kinds.pod, {
      transform: (pod, held) => trimmer.pod(withoutNulls(pod), held),
      fields: podFields,
      gatherMs: podGatherMs,
      // Without a kubelet that stops them, pods are deleted at once, without a deletionTimestamp first.
      endsUnannounced: (pod) =>
        nodeNamesOfPod(pod).length === 0 || ['Succeeded', 'Failed'].includes(pod.status?.phase ?? ''),
    }),
    nodes: registry.cache(kinds.node, {
      transform: readable(kinds.node.kind, keptNode, onRead, standInForNode),
      fields: nodeFields,
    }),
    nodeClaims: watched(karpenterKinds.nodeClaim, standInForClaim),
    nodePools: watched(karpenterKinds.nodePool, standInForPool),
    namespaces: trimmed(kinds.namespace, standInByName),
    daemonSets: registry.cache(kinds.daemonSet, {
      transform: readable(kinds.daemonSet.kind, trimmer.daemonSet, onRead),
      fields: daemonSetFields,
    }),
    ...openDeployments(registry, settings.surgeOnDrain, onRead),
    limitRanges: registry.cache(kinds.limitRange, {
      transform: readable(kinds.limitRange.kind, keptObject<LimitRange>, onRead),
      fields: objectFields,
      // ClusterRoles of earlier versions do not grant it.
      isOptional: 'ifRefused',
    }),
    podDisruptionBudgets: trimmed(kinds.podDisruptionBudget, standInForBudget),
    volumeAttachments: trimmed(kinds.volumeAttachment, standInForAttachment),
    persistentVolumeClaims: trimmed(kinds.persistentVolumeClaim),
    persistentVolumes: trimmed(kinds.persistentVolume),
    storageClasses: trimmed(kinds.storageClass),
    csiNodes: trimmed(kinds.csiNode),
    ...(policyOf(settings).learns && {
      csiDrivers: registry.cache(kinds.csiDriver, {
        transform: readable(kinds.csiDriver.kind, keptObject<CsiDriver>, onRead),
        fields: objectFields,
        // ClusterRoles of earlier versions do not grant it.
        isOptional: 'ifRefused',
      }),
      csiStorageCapacities: registry.cache(kinds.csiStorageCapacity, {
        transform: readable(kinds.csiStorageCapacity.kind, keptObject<CsiStorageCapacity>, onRead),
        fields: objectFields,
        isOptional: 'ifRefused',
      }),
    }),
    ...(policyOf(settings).keepsQuotas && {
      capacityQuotas: registry.cache(autoscalingKinds.capacityQuota, {
        // What is wrong with a spec is told to its owner.
        transform: (quota) => withReadableStatus(withoutNulls(quota)),
        fields: objectFields,
        areLimits: true,
        isOptional: 'ifRefused',
      }),
    }),
    ...openDevices(registry, settings.ignoreDraRequests, onRead),
    ...(settings.defaultSpread.length > 0 && { applications: openApplications(registry, onRead) }),
    ...(settings.featureGates.capacityBuffer && { buffers: openBuffers(registry, podTemplates, onRead) }),
    ...(settings.featureGates.groupScheduling &&
      policyOf(settings).servesPodGroups && {
        groupKinds: {
          open: (type) =>
            registry.cache(type, {
              // An invalid group still exists: its launches must not be released.
              transform: readable(type.kind, keptObject, onRead, standInForGroup),
              fields: objectFields,
              isOptional: true,
            }),
          openPodTemplates: podTemplates,
        },
      }),
    ...(settings.featureGates.nodeOverlay && {
      nodeOverlays: trimmed(karpenterKinds.nodeOverlay),
    }),
    nodeClasses: provider.nodeClasses.map((type) => trimmed(type, standInForNodeClass)),
    ...(settings.brakeNamespace !== undefined && {
      brakeConfigMaps: registry.cache(kinds.configMap, {
        namespace: settings.brakeNamespace,
        fieldSelector: `metadata.name=${brakeName}`,
        isOptional: true,
      }),
    }),
  }
  addIndexes(caches, settings)
  return caches
}

/** Objects by whose writers another controller is recognized. */
function writtenCache<T extends NodeClaim | NodePool>(
  registry: Pick<CacheRegistry, 'cache'>,
  type: ResourceType<T>,
  read: (object: T, held?: T) => T | undefined,
  onWritten: Writing,
): Cache<T> {
  return registry.cache(type, {
    transform: (object, held) => {
      const kept = read(object, held)
      if (kept !== undefined) onWritten(type.kind, object, kept, held)
      return kept
    },
    fields: writtenFields,
  })
}

function addIndexes(caches: Caches, settings: Pick<Settings, 'compatibility' | 'featureGates'>): void {
  const optional = (value: string | undefined) => (value === undefined || value === '' ? [] : [value])
  caches.pods.addIndex(indexes.byNode, nodeNamesOfPod)
  caches.pods.addIndex(indexes.byOwner, ownersOfPod)
  caches.pods.addIndex(indexes.byVolumeClaim, claimKeysOf)
  if (policyOf(settings).judgesBudgets)
    caches.pods.addIndex(indexes.unready, (pod) => (isAwaited(pod) ? [pod.metadata.namespace ?? ''] : []))
  if (settings.featureGates.groupScheduling)
    caches.pods.addIndex(indexes.byProvisioningRequest, (pod) => optional(consumedBy(pod)))
  caches.limitRanges.addIndex(indexes.byNamespace, ({ metadata }) => [metadata.namespace ?? ''])
  caches.persistentVolumes.addIndex(indexes.byStorageClass, (volume) => optional(storageClassNameOf(volume)))
  caches.csiStorageCapacities?.addIndex(indexes.byStorageClass, ({ storageClassName }) => [storageClassName])
  caches.nodes.addIndex(indexes.byProviderId, (node) => optional(node.spec?.providerID))
  caches.nodeClaims.addIndex(indexes.byProviderId, (claim) => optional(claim.status?.providerID))
  caches.nodeClaims.addIndex(indexes.byNodePool, (claim) =>
    optional(claim.metadata.labels?.['karpenter.sh/nodepool']),
  )
  caches.nodeClaims.addIndex(indexes.byPodGroup, (claim) => groupsOfClaim(claim).map(({ id }) => id))
  caches.volumeAttachments.addIndex(indexes.byNode, (attachment) => [attachment.spec.nodeName])
}

/** Also of a malformed pod. */
function nodeNamesOfPod({ spec }: { readonly spec?: Partial<Pod['spec']> }): readonly string[] {
  const name: unknown = spec?.nodeName
  return typeof name === 'string' && name !== '' ? [name] : []
}

function ownersOfPod({ metadata }: Pod): readonly string[] {
  const owners: unknown = metadata.ownerReferences
  if (!Array.isArray(owners)) return []
  return owners.flatMap((owner: { readonly uid?: unknown } | null) =>
    typeof owner?.uid === 'string' ? [owner.uid] : [],
  )
}

/** `namespace/name` of the PersistentVolumeClaims that a pod mounts; none for a malformed pod. */
function claimKeysOf(pod: Pod): readonly string[] {
  const volumes: unknown = (pod.spec as Pod['spec'] | undefined)?.volumes
  if (!Array.isArray(volumes) || volumes.some((volume) => typeof volume !== 'object' || volume === null))
    return []
  return claimedVolumes(pod).map(({ claimName }) => `${pod.metadata.namespace ?? ''}/${claimName}`)
}

function openDeployments(
  registry: Pick<CacheRegistry, 'cache'>,
  surgeOnDrain: Settings['surgeOnDrain'],
  onRead: Reading,
): Pick<Caches, 'deployments'> {
  // Settings of older snapshots do not say.
  if (surgeOnDrain !== 'annotated' && surgeOnDrain !== 'all') return {}
  return {
    deployments: registry.cache(kinds.deployment, {
      transform: readable(kinds.deployment.kind, keptDeployment, onRead),
      fields: deploymentFields,
      isOptional: 'ifRefused',
    }),
  }
}

function openBuffers(
  registry: Pick<CacheRegistry, 'cache'>,
  podTemplates: () => Cache<PodTemplate>,
  onRead: Reading,
): BufferCaches {
  return {
    capacityBuffers: registry.cache(autoscalingKinds.capacityBuffer, {
      transform: readable(autoscalingKinds.capacityBuffer.kind, keptObject<CapacityBuffer>, onRead),
      fields: objectFields,
      isOptional: true,
    }),
    podTemplates: podTemplates(),
  }
}

function openApplications(registry: Pick<CacheRegistry, 'cache'>, onRead: Reading): ApplicationCaches {
  const services = registry.cache(kinds.service, {
    transform: readable<Service>(kinds.service.kind, selectorIfAny, onRead),
  })
  services.addIndex(indexes.byNamespace, ({ metadata }) => [metadata.namespace ?? ''])
  return {
    services,
    replicationControllers: registry.cache(kinds.replicationController, {
      transform: readable<ReplicationController>(kinds.replicationController.kind, selectorIfAny, onRead),
    }),
    replicaSets: registry.cache(kinds.replicaSet, {
      transform: readable(kinds.replicaSet.kind, selectorOnly, onRead),
    }),
    statefulSets: registry.cache(kinds.statefulSet, {
      transform: readable(kinds.statefulSet.kind, selectorOnly, onRead),
    }),
  }
}

/** Decisions wait for these, unless the server refuses them. */
function openDevices(
  registry: Pick<CacheRegistry, 'cache'>,
  isIgnored: Settings['ignoreDraRequests'],
  onRead: Reading,
): Pick<
  Caches,
  'deviceClasses' | 'deviceTaintRules' | 'deviceTaintRulesBeta' | 'resourceClaims' | 'resourceSlices'
> {
  if (isIgnored) return {}
  const opened = <T extends KubeObject>(type: ResourceType<T>) =>
    registry.cache(type, {
      transform: readable(type.kind, keptObject<T>, onRead),
      fields: objectFields,
      isOptional: 'ifRefused',
    })
  return {
    resourceSlices: openResourceSlices(registry, onRead),
    resourceClaims: opened(kinds.resourceClaim),
    deviceClasses: opened(kinds.deviceClass),
    deviceTaintRules: opened(deviceTaintRuleKinds.v1),
    deviceTaintRulesBeta: opened(deviceTaintRuleKinds.v1beta2),
  }
}

/** Whether pods with resource claims are scheduled: all device objects are known. */
export function servesDevices(
  caches: Pick<Caches, 'deviceClasses' | 'resourceClaims' | 'resourceSlices'>,
): boolean {
  return [caches.deviceClasses, caches.resourceClaims, caches.resourceSlices].every(
    (cache) => cache?.isSynced === true,
  )
}

function openResourceSlices(registry: Pick<CacheRegistry, 'cache'>, onRead: Reading): Cache<ResourceSlice> {
  const trim = ({ apiVersion, kind, metadata, spec }: ResourceSlice): ResourceSlice => ({
    apiVersion,
    kind,
    metadata: {
      ...named(metadata),
      ...(metadata.ownerReferences && { ownerReferences: metadata.ownerReferences }),
    },
    spec,
  })
  const slices = registry.cache(kinds.resourceSlice, {
    transform: readable(kinds.resourceSlice.kind, trim, onRead),
    isOptional: 'ifRefused',
  })
  slices.addIndex(indexes.byNode, nodeNamesOf)
  return slices
}

/** The nodes of a slice: the one that it names, and its owners. */
export function nodeNamesOf({ metadata, spec }: ResourceSlice): readonly string[] {
  const owners = (metadata.ownerReferences ?? []).filter(({ kind }) => kind === kinds.node.kind)
  const names = [spec.nodeName ?? '', ...owners.map(({ name }) => name)]
  return [...new Set(names.filter((name) => name !== ''))]
}

function selectorIfAny({
  apiVersion,
  kind,
  metadata,
  spec,
}: Service | ReplicationController): Service & ReplicationController {
  const { selector } = spec ?? {}
  return { apiVersion, kind, metadata: named(metadata), spec: selector === undefined ? {} : { selector } }
}

function selectorOnly({ apiVersion, kind, metadata, spec }: SelectingWorkload): SelectingWorkload {
  return { apiVersion, kind, metadata: named(metadata), spec: { selector: spec.selector } }
}

function named({ name, namespace, uid, resourceVersion }: ObjectMeta): ObjectMeta {
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  }
}
