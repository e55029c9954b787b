/**
 * Which fields of objects the caches keep: those that something reads. The rest, above all managedFields and container
 * specs, is the largest part of most objects. Malformed parts are kept as they are, so that the checks of shapes report
 * them.
 */
import {
  type Container,
  type ContainerStatus,
  type DaemonSet,
  type Deployment,
  isRecord,
  type KubeObject,
  type Node,
  type ObjectMeta,
  ownValue,
  type Pod,
  type PodCondition,
  type PodSpec,
  type PodStatus,
  type PodTemplate,
  type PodTemplateSpec,
  type Volume,
} from '@tenon/api'
import type { ReadFields } from '@tenon/kube'
import { isSameValue, reusing, SharedParts } from './same-value.ts'

/** Complete, so that the compiler asks about every new field of the type. */
type Kept<T> = { readonly [Field in keyof Required<T>]: boolean }

const keptOfPodSpec: Kept<PodSpec> = {
  nodeName: true,
  nodeSelector: true,
  affinity: true,
  tolerations: true,
  topologySpreadConstraints: true,
  containers: true,
  initContainers: true,
  overhead: true,
  runtimeClassName: false,
  resources: true,
  volumes: true,
  priority: true,
  priorityClassName: true,
  preemptionPolicy: true,
  schedulerName: true,
  schedulingGates: true,
  terminationGracePeriodSeconds: true,
  restartPolicy: true,
  hostNetwork: true,
  hostUsers: true,
  resourceClaims: true,
  schedulingGroup: true,
}
const keptOfContainer: Kept<Container> = {
  name: true,
  image: false,
  ports: true,
  resources: true,
  restartPolicy: true,
  restartPolicyRules: true,
  volumeMounts: false,
}
const keptOfVolume: Kept<Volume> = {
  name: true,
  persistentVolumeClaim: true,
  ephemeral: true,
  hostPath: false,
  emptyDir: false,
}
const keptOfPodStatus: Kept<PodStatus> = {
  phase: true,
  conditions: true,
  nominatedNodeName: true,
  reason: true,
  message: false,
  startTime: true,
  podIP: false,
  resourceClaimStatuses: true,
  extendedResourceClaimStatus: true,
  containerStatuses: true,
  initContainerStatuses: true,
  resources: true,
  allocatedResources: true,
}
const keptOfPodCondition: Kept<PodCondition> = {
  type: true,
  status: true,
  reason: true,
  message: false,
  lastTransitionTime: true,
  lastProbeTime: false,
  observedGeneration: false,
}
const keptOfContainerStatus: Kept<ContainerStatus> = {
  name: true,
  resources: true,
  allocatedResources: true,
  ready: false,
  restartCount: false,
  state: false,
}
const keptOfNodeStatus: Kept<NonNullable<Node['status']>> = {
  capacity: true,
  allocatable: true,
  conditions: true,
  addresses: true,
  phase: true,
  nodeInfo: true,
  daemonEndpoints: false,
  volumesAttached: false,
  volumesInUse: false,
  declaredFeatures: true,
}
/** Written by `kubectl apply`; contains the whole object. */
const lastApplied = 'kubectl.kubernetes.io/last-applied-configuration'

/** Fields for {@link withoutBulk}. */
const readOfMetadata: ReadFields = {
  members: { managedFields: false, annotations: { members: { [lastApplied]: false }, others: true } },
  others: true,
}
export const objectFields: ReadFields = { members: { metadata: readOfMetadata }, others: true }
/** With what says who wrote the object, and when. */
export const writtenFields: ReadFields = {
  members: {
    metadata: {
      members: { ...readOfMetadata.members, managedFields: { members: { fieldsV1: false }, others: true } },
      others: true,
    },
  },
  others: true,
}

/** Fields for {@link keptNode}. */
export const nodeFields: ReadFields = {
  members: { metadata: readOfMetadata, status: { members: keptOfNodeStatus, others: false } },
  others: true,
}

const readOfContainers: ReadFields = { members: keptOfContainer, others: false }
const readOfStatuses: ReadFields = { members: keptOfContainerStatus, others: false }
const readOfPodSpec: ReadFields = {
  members: {
    ...keptOfPodSpec,
    containers: readOfContainers,
    initContainers: readOfContainers,
    volumes: { members: keptOfVolume, others: false },
  },
  others: false,
}

export const podFields: ReadFields = {
  members: {
    apiVersion: true,
    kind: true,
    metadata: readOfMetadata,
    spec: readOfPodSpec,
    status: {
      members: {
        ...keptOfPodStatus,
        conditions: { members: keptOfPodCondition, others: false },
        containerStatuses: readOfStatuses,
        initContainerStatuses: readOfStatuses,
      },
      others: false,
    },
  },
  others: false,
}

export const daemonSetFields: ReadFields = {
  members: {
    metadata: readOfMetadata,
    spec: { members: { template: { members: { spec: readOfPodSpec }, others: true } }, others: true },
    status: false,
  },
  others: true,
}

export const deploymentFields: ReadFields = {
  members: {
    metadata: readOfMetadata,
    spec: { members: { template: { members: { metadata: true }, others: false } }, others: true },
    status: true,
  },
  others: true,
}

export const podTemplateFields: ReadFields = {
  members: {
    metadata: readOfMetadata,
    template: { members: { spec: readOfPodSpec }, others: true },
  },
  others: true,
}

/** Removes managedFields and the annotation of `kubectl apply`. */
export function withoutBulk<T extends KubeObject>(object: T): T {
  return isRecord(object.metadata) ? { ...object, metadata: keptMetadata(object.metadata) } : object
}

/** The same; parts equal to those of the earlier state `held` keep their identity. */
export function keptObject<T extends KubeObject>(object: T, held?: T): T {
  return reusing(withoutBulk(object), held)
}

/**
 * A Node without its bulk, images, attached volumes and daemon endpoints; otherwise as {@link keptObject}.
 */
export function keptNode(node: Node, held?: Node): Node {
  const trimmed = withoutBulk(node)
  const kept = isRecord(node.status) ? { ...trimmed, status: only(node.status, keptOfNodeStatus) } : trimmed
  return reusing(kept, held)
}

/** A Deployment without the spec of its pods. */
export function keptDeployment(deployment: Deployment, held?: Deployment): Deployment {
  const { apiVersion, kind, metadata, spec, status } = deployment
  const trimmed: Deployment = {
    apiVersion,
    kind,
    metadata,
    spec: { ...spec, template: { ...(spec.template.metadata && { metadata: spec.template.metadata }) } },
    ...(status && { status }),
  }
  return keptObject(trimmed, held)
}

const noSpec = {} as PodSpec

/** Trims pods and DaemonSets, and shares equal parts between them. */
export class PodTrimmer {
  readonly #shared = new SharedParts()
  /** Separate, as timestamps make them many. */
  readonly #conditions = new SharedParts()
  /** The previous pod: lists are ordered by name, so pods of a workload follow each other. */
  #last: Pod | undefined
  #lastCommon: PodSpec | undefined

  /** @param held the earlier state of the pod, trimmed; an equal spec keeps its identity. */
  readonly pod = (pod: Pod, held?: Pod): Pod => {
    const { apiVersion, kind, metadata, spec, status } = pod
    if (!isRecord(metadata)) return pod
    // Still malformed, as `containers` is missing; but code that reads `spec.nodeName` works.
    if (!isRecord(spec)) return { ...withoutBulk(pod), spec: noSpec }
    const like = held ?? this.#last
    const trimmed = {
      apiVersion,
      kind,
      metadata: this.#metadata(metadata, like?.metadata),
      spec: this.#spec(spec, held?.spec),
      ...(status !== undefined && { status: this.#status(status, spec, like?.status) }),
    }
    this.#last = trimmed
    return trimmed
  }

  readonly daemonSet = (set: DaemonSet): DaemonSet => {
    const { apiVersion, kind, metadata, spec } = set
    if (!isRecord(spec) || !isRecord(spec.template) || !isRecord(spec.template.spec)) return withoutBulk(set)
    const { selector, template } = spec
    return {
      apiVersion,
      kind,
      metadata: keptMetadata(metadata),
      spec: {
        selector,
        template: {
          ...(template.metadata !== undefined && { metadata: template.metadata }),
          spec: this.#spec(template.spec),
        },
      },
    }
  }

  readonly podTemplate = (object: PodTemplate): PodTemplate => {
    const { apiVersion, kind, metadata, template } = object
    if (!isRecord(template) || !isRecord(template.spec)) return withoutBulk(object)
    return { apiVersion, kind, metadata: keptMetadata(metadata), template: this.template(template) }
  }

  template({ metadata, spec }: PodTemplateSpec): PodTemplateSpec {
    const { labels, annotations } = metadata ?? {}
    const own = {
      ...(labels !== undefined && { labels }),
      ...(annotations !== undefined && { annotations }),
    }
    return {
      ...(Object.keys(own).length > 0 && { metadata: own }),
      spec: isRecord(spec) ? this.#spec(spec) : noSpec,
    }
  }

  #metadata(metadata: ObjectMeta, like: ObjectMeta | undefined): ObjectMeta {
    const { labels, annotations, ownerReferences, ...kept } = keptMetadata(metadata)
    return {
      ...kept,
      ...(labels !== undefined && { labels: this.#shared.of(labels, like?.labels) }),
      ...(annotations !== undefined && { annotations: this.#shared.of(annotations, like?.annotations) }),
      ...(ownerReferences !== undefined && {
        ownerReferences: this.#shared.of(ownerReferences, like?.ownerReferences),
      }),
    }
  }

  #spec(spec: PodSpec, held?: PodSpec): PodSpec {
    const { nodeName, containers, initContainers, volumes, ...kept } = only(spec, keptOfPodSpec)
    const claimed = keptVolumes(volumes)
    const own = {
      ...(nodeName !== undefined && { nodeName }),
      ...(claimed !== undefined && { volumes: claimed }),
    }
    const trim = (container: Container) => keptContainer(container, kept.hostNetwork === true)
    const shareable = {
      ...kept,
      containers: each(containers, trim),
      ...(initContainers !== undefined && { initContainers: each(initContainers, trim) }),
    }
    if (held !== undefined && isSameValue({ ...shareable, ...own }, held)) return held
    // What pods of one workload have in common, as one part; `own` differs from pod to pod.
    this.#lastCommon = this.#shared.of(shareable, this.#lastCommon)
    return { ...this.#lastCommon, ...own }
  }

  #status(status: PodStatus, spec: PodSpec, like: PodStatus | undefined): PodStatus {
    if (!isRecord(status)) return status
    const { conditions, containerStatuses, initContainerStatuses, ...kept } = only(status, keptOfPodStatus)
    const resized = changedStatuses(containerStatuses, spec.containers)
    const initResized = changedStatuses(initContainerStatuses, spec.initContainers)
    return {
      ...kept,
      ...(conditions !== undefined && {
        conditions: each(conditions, (one, at) =>
          this.#conditions.of(only(one, keptOfPodCondition), like?.conditions?.[at]),
        ),
      }),
      ...(resized !== undefined && { containerStatuses: resized }),
      ...(initResized !== undefined && { initContainerStatuses: initResized }),
    }
  }
}

function keptMetadata(all: ObjectMeta): ObjectMeta {
  const { managedFields: _, ...metadata } = all
  const { annotations } = metadata
  if (!isRecord(annotations) || annotations[lastApplied] === undefined) return metadata
  const { [lastApplied]: __, ...rest } = annotations
  return { ...metadata, annotations: rest }
}

/** Only host ports matter for placement; on the host network all ports are host ports. */
function keptContainer(container: Container, hasHostNetwork: boolean): Container {
  const { ports, ...kept } = only(container, keptOfContainer)
  if (!Array.isArray(ports)) return ports === undefined ? kept : { ...kept, ports }
  const onHost = ports.filter(
    (port: unknown) => hasHostNetwork || !isRecord(port) || port['hostPort'] !== undefined,
  )
  return onHost.length === 0 ? kept : { ...kept, ports: onHost }
}

/** Only volumes with claims restrict where a pod can run. */
function keptVolumes(volumes: PodSpec['volumes']): PodSpec['volumes'] {
  if (!Array.isArray(volumes)) return volumes
  const claimed = volumes.filter(
    (volume: unknown) =>
      !isRecord(volume) ||
      (volume['persistentVolumeClaim'] ?? undefined) !== undefined ||
      (volume['ephemeral'] ?? undefined) !== undefined,
  )
  return claimed.length === 0 ? undefined : each(claimed, (volume: Volume) => only(volume, keptOfVolume))
}

/** Statuses of containers whose allocated resources differ from their requests. */
function changedStatuses(
  statuses: readonly ContainerStatus[] | undefined,
  containers: readonly Container[] | undefined,
): readonly ContainerStatus[] | undefined {
  if (!Array.isArray(statuses) || !Array.isArray(containers)) return statuses
  const changed = statuses.filter((status: ContainerStatus) => {
    if (!isRecord(status)) return true
    const container = containers.find((one: unknown) => isRecord(one) && one['name'] === status.name)
    return !holdsWhatItAsks(status, container?.resources?.requests)
  })
  return changed.length === 0 ? undefined : each(changed, (one) => only(one, keptOfContainerStatus))
}

function holdsWhatItAsks(status: ContainerStatus, asked: unknown): boolean {
  const { resources, allocatedResources } = status
  if (typeof status.name !== 'string') return false
  if (resources === undefined && allocatedResources === undefined) return true
  if (resources !== undefined && !isRecord(resources)) return false
  return (
    isSameList(resources?.requests, asked) &&
    (allocatedResources === undefined || isSameList(allocatedResources, asked))
  )
}

function isSameList(a: unknown, b: unknown): boolean {
  const [left, right] = [a ?? {}, b ?? {}]
  if (!isRecord(left) || !isRecord(right)) return false
  const names = Object.keys(left)
  return (
    names.length === Object.keys(right).length &&
    names.every((name) => ownValue(left, name) === ownValue(right, name))
  )
}

function each<T>(list: readonly T[], trim: (item: T, at: number) => T): readonly T[] {
  return Array.isArray(list) ? list.map((item: T, at) => (isRecord(item) ? trim(item, at) : item)) : list
}

function only<T extends object>(from: T, kept: Kept<T>): T {
  if (hasOnly(from, kept)) return from
  const result: Partial<Record<keyof T, unknown>> = {}
  for (const field in kept) if (kept[field] && from[field] !== undefined) result[field] = from[field]
  // Removed fields are optional, or the object is malformed.
  return result as T
}

/** True if the decoder skipped the other fields. */
function hasOnly<T extends object>(from: T, kept: Kept<T>): boolean {
  for (const field in from) if (!kept[field]) return false
  return true
}
