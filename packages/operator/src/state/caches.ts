import {
  autoscalingKinds,
  type CapacityBuffer,
  type ConfigMap,
  consumedBy,
  type CsiNode,
  type DaemonSet,
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
} from '@tenon/api'
import { claimedVolumes } from '@tenon/engine'
import type { Cache, CacheRegistry } from '@tenon/kube'
import type { CloudProvider } from '@tenon/provider'
import { brakeName } from './pause.ts'
import { groupsOfClaim } from './pods/group-claims.ts'
import { policyOf, type Settings } from '../settings.ts'
import {
  daemonSetFields,
  keptNode,
  keptObject,
  nodeFields,
  objectFields,
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

/** Local copies of everything the operator reads, with the indexes it looks things up by. */
export interface Caches {
  readonly pods: Cache<Pod>
  readonly nodes: Cache<Node>
  readonly nodeClaims: Cache<NodeClaim>
  readonly nodePools: Cache<NodePool>
  readonly namespaces: Cache<Namespace>
  readonly daemonSets: Cache<DaemonSet>
  readonly limitRanges: Cache<LimitRange>
  readonly podDisruptionBudgets: Cache<PodDisruptionBudget>
  readonly volumeAttachments: Cache<VolumeAttachment>
  readonly persistentVolumeClaims: Cache<PersistentVolumeClaim>
  readonly persistentVolumes: Cache<PersistentVolume>
  readonly storageClasses: Cache<StorageClass>
  readonly csiNodes: Cache<CsiNode>
  readonly nodeClasses: readonly Cache<NodeClass>[]
  /** The one ConfigMap `tenon-brake`; absent where the namespace of the controller is not known. */
  readonly brakeConfigMaps?: Cache<ConfigMap>
  /** Followed only with the feature gate of the same name. */
  readonly nodeOverlays?: Cache<NodeOverlay>
  /** Followed only with the feature gate of the same name, and as far as the kind is served. */
  readonly buffers?: BufferCaches
  /** Devices of nodes; followed only when pods with resource claims are served. */
  readonly resourceSlices?: Cache<ResourceSlice>
  readonly resourceClaims?: Cache<ResourceClaim>
  readonly deviceClasses?: Cache<DeviceClass>
  /** By version; most servers have none of them. */
  readonly deviceTaintRules?: Cache<DeviceTaintRule>
  readonly deviceTaintRulesBeta?: Cache<DeviceTaintRule>
  /** Kinds of groups of pods; only with the feature gate, and followed once it is known that they are served. */
  readonly groupKinds?: GroupKinds
  /** What tells which pods are one application; followed only when a default spread is set. */
  readonly applications?: ApplicationCaches
}

/** What keeps room, and what for. Nothing waits for them: the kind need not be served, nor the right be there. */
export interface BufferCaches {
  readonly capacityBuffers: Cache<CapacityBuffer>
  readonly podTemplates: Cache<PodTemplate>
}

/** Opens the cache of a kind of groups (gangs.md 7.1). */
export interface GroupKinds {
  open<T extends KubeObject>(type: ResourceType<T>): Cache<T>
  /** The templates of pods that ProvisioningRequests are for. */
  openPodTemplates(): Cache<PodTemplate>
}

/** Selectors of what stands behind pods. */
export interface ApplicationCaches {
  readonly services: Cache<Service>
  readonly replicationControllers: Cache<ReplicationController>
  readonly replicaSets: Cache<SelectingWorkload>
  readonly statefulSets: Cache<SelectingWorkload>
}

/** Names of the indexes of {@link Caches}. */
export const indexes = {
  byNode: 'node',
  byProviderId: 'providerID',
  byOwner: 'owner',
  byNodePool: 'nodePool',
  byNamespace: 'namespace',
  byVolumeClaim: 'volumeClaim',
  byStorageClass: 'storageClass',
  byPodGroup: 'podGroup',
  byProvisioningRequest: 'provisioningRequest',
} as const

/** Nearly all that happens in a cluster happens to pods, and batches wait for them much longer than this. */
const podGatherMs = 50

/**
 * Takes the operator's caches from the registry, which starts each of them once.
 * @param onRead told of every object but pods, as it enters.
 */
export function openCaches(
  registry: Pick<CacheRegistry, 'cache'>,
  provider: Pick<CloudProvider, 'nodeClasses'>,
  settings: Pick<
    Settings,
    'brakeNamespace' | 'compatibility' | 'defaultSpread' | 'featureGates' | 'ignoreDraRequests'
  >,
  onRead: Reading = () => undefined,
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
      // Without a kubelet that ends them, pods go at once; the others are told to end first.
      endsUnannounced: (pod) =>
        nodeNamesOfPod(pod).length === 0 || ['Succeeded', 'Failed'].includes(pod.status?.phase ?? ''),
    }),
    nodes: registry.cache(kinds.node, {
      transform: readable(kinds.node.kind, keptNode, onRead, standInForNode),
      fields: nodeFields,
    }),
    nodeClaims: trimmed(karpenterKinds.nodeClaim, standInForClaim),
    nodePools: trimmed(karpenterKinds.nodePool, standInForPool),
    namespaces: trimmed(kinds.namespace, standInByName),
    daemonSets: registry.cache(kinds.daemonSet, {
      transform: readable(kinds.daemonSet.kind, trimmer.daemonSet, onRead),
      fields: daemonSetFields,
    }),
    limitRanges: registry.cache(kinds.limitRange, {
      transform: readable(kinds.limitRange.kind, keptObject<LimitRange>, onRead),
      fields: objectFields,
      // Roles of earlier versions do not grant it.
      isOptional: 'ifRefused',
    }),
    podDisruptionBudgets: trimmed(kinds.podDisruptionBudget, standInForBudget),
    volumeAttachments: trimmed(kinds.volumeAttachment, standInForAttachment),
    persistentVolumeClaims: trimmed(kinds.persistentVolumeClaim),
    persistentVolumes: trimmed(kinds.persistentVolume),
    storageClasses: trimmed(kinds.storageClass),
    csiNodes: trimmed(kinds.csiNode),
    ...openDevices(registry, settings.ignoreDraRequests, onRead),
    ...(settings.defaultSpread.length > 0 && { applications: openApplications(registry, onRead) }),
    ...(settings.featureGates.capacityBuffer && { buffers: openBuffers(registry, podTemplates, onRead) }),
    ...(settings.featureGates.groupScheduling &&
      policyOf(settings).servesPodGroups && {
        groupKinds: {
          open: (type) =>
            registry.cache(type, {
              // One that cannot be read is there all the same: what was launched for it is not given back.
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
  const optional = (value: string | undefined) => (value === undefined || value === '' ? [] : [value])
  caches.pods.addIndex(indexes.byNode, nodeNamesOfPod)
  caches.pods.addIndex(indexes.byOwner, ownersOfPod)
  caches.pods.addIndex(indexes.byVolumeClaim, claimKeysOf)
  if (settings.featureGates.groupScheduling)
    caches.pods.addIndex(indexes.byProvisioningRequest, (pod) => optional(consumedBy(pod)))
  caches.limitRanges.addIndex(indexes.byNamespace, ({ metadata }) => [metadata.namespace ?? ''])
  caches.persistentVolumes.addIndex(indexes.byStorageClass, (volume) => optional(storageClassNameOf(volume)))
  caches.nodes.addIndex(indexes.byProviderId, (node) => optional(node.spec?.providerID))
  caches.nodeClaims.addIndex(indexes.byProviderId, (claim) => optional(claim.status?.providerID))
  caches.nodeClaims.addIndex(indexes.byNodePool, (claim) =>
    optional(claim.metadata.labels?.['karpenter.sh/nodepool']),
  )
  caches.nodeClaims.addIndex(indexes.byPodGroup, (claim) => groupsOfClaim(claim).map(({ id }) => id))
  caches.volumeAttachments.addIndex(indexes.byNode, (attachment) => [attachment.spec.nodeName])
  return caches
}

/** Of a pod that cannot be read, too, as far as it says. */
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

/** `namespace/name` of the claims that a pod mounts; of a pod that cannot be read, none. */
function claimKeysOf(pod: Pod): readonly string[] {
  const volumes: unknown = (pod.spec as Pod['spec'] | undefined)?.volumes
  if (!Array.isArray(volumes) || volumes.some((volume) => typeof volume !== 'object' || volume === null))
    return []
  return claimedVolumes(pod).map(({ claimName }) => `${pod.metadata.namespace ?? ''}/${claimName}`)
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

/** Nothing is decided before all of it is known, or the server has said that it will not be. */
function openDevices(
  registry: Pick<CacheRegistry, 'cache'>,
  isIgnored: Settings['ignoreDraRequests'],
  onRead: Reading,
): Pick<
  Caches,
  'deviceClasses' | 'deviceTaintRules' | 'deviceTaintRulesBeta' | 'resourceClaims' | 'resourceSlices'
> {
  if (isIgnored === true) return {}
  const ifRefused = { isOptional: 'ifRefused' } as const
  const refusable = isIgnored === 'auto' && ifRefused
  const opened = <T extends KubeObject>(
    type: ResourceType<T>,
    waiting: { readonly isOptional?: 'ifRefused' } = { ...refusable },
  ) =>
    registry.cache(type, {
      transform: readable(type.kind, keptObject<T>, onRead),
      fields: objectFields,
      ...waiting,
    })
  return {
    resourceSlices: openResourceSlices(registry, { ...refusable }, onRead),
    resourceClaims: opened(kinds.resourceClaim),
    deviceClasses: opened(kinds.deviceClass),
    deviceTaintRules: opened(deviceTaintRuleKinds.v1, ifRefused),
    deviceTaintRulesBeta: opened(deviceTaintRuleKinds.v1beta2, ifRefused),
  }
}

/** Whether pods with resource claims get nodes: all that there is to know about devices is known. */
export function servesDevices(
  caches: Pick<Caches, 'deviceClasses' | 'resourceClaims' | 'resourceSlices'>,
): boolean {
  return [caches.deviceClasses, caches.resourceClaims, caches.resourceSlices].every(
    (cache) => cache?.isSynced === true,
  )
}

function openResourceSlices(
  registry: Pick<CacheRegistry, 'cache'>,
  waiting: { readonly isOptional?: 'ifRefused' },
  onRead: Reading,
): Cache<ResourceSlice> {
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
    ...waiting,
  })
  slices.addIndex(indexes.byNode, nodeNamesOf)
  return slices
}

/** The nodes whose devices a slice tells: the one it names, and its owners. */
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

/** The part of the metadata that tells which object and which state of it this is. */
function named({ name, namespace, uid, resourceVersion }: ObjectMeta): ObjectMeta {
  return {
    name,
    ...(namespace !== undefined && { namespace }),
    ...(uid !== undefined && { uid }),
    ...(resourceVersion !== undefined && { resourceVersion }),
  }
}
