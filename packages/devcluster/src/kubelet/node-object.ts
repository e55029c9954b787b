import {
  type CsiNode,
  featuresOfKubelet,
  type Lease,
  minorOf,
  type Node,
  type NodeCondition,
  type OwnerReference,
  parseResource,
  ownValue,
  setOwn,
} from '@tenon/api'
import { rfc3339, rfc3339Micro } from '@tenon/runtime'
import type { KubeletSpec } from '../contract.ts'
import type { KubeletSettings } from './settings.ts'

export const leaseNamespace = 'kube-node-lease'
const hostname = 'kubernetes.io/hostname'
/** The default port of kubelets. */
const kubeletPort = 10250

/** Labels that a kubelet sets on an existing Node; others are not changed. */
const reappliedLabels = [
  hostname,
  'kubernetes.io/os',
  'kubernetes.io/arch',
  'beta.kubernetes.io/os',
  'beta.kubernetes.io/arch',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'node.kubernetes.io/instance-type',
]

/** The Node as a kubelet registers it, not yet Ready. */
export function newNode(spec: KubeletSpec, nowMs: number): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: spec.nodeName,
      labels: nodeLabels(spec),
      annotations: { 'volumes.kubernetes.io/controller-managed-attach-detach': 'true' },
    },
    spec: {
      ...(spec.providerId === '' ? {} : { providerID: spec.providerId }),
      ...(spec.taints.length === 0 ? {} : { taints: spec.taints }),
    },
    status: nodeStatus(spec, false, undefined, nowMs),
  }
}

/** What a kubelet changes on an existing Node; undefined if nothing. */
export function adoptionPatch(spec: KubeletSpec, node: Node): object | undefined {
  const wanted = nodeLabels(spec)
  const labels: Record<string, string> = {}
  for (const key of reappliedLabels) {
    const value = ownValue(wanted, key)
    if (value !== undefined && ownValue(node.metadata.labels, key) !== value) setOwn(labels, key, value)
  }
  const needsProviderId = (node.spec?.providerID ?? '') === '' && spec.providerId !== ''
  if (Object.keys(labels).length === 0 && !needsProviderId) return undefined
  return { metadata: { labels }, ...(needsProviderId ? { spec: { providerID: spec.providerId } } : {}) }
}

/** The status that a kubelet writes; conditions of others are kept. */
export function nodeStatus(
  spec: KubeletSpec,
  ready: boolean,
  known: Node | undefined,
  nowMs: number,
): NonNullable<Node['status']> {
  const now = rfc3339(nowMs)
  const before = known?.status?.conditions ?? []
  const own = ownConditions(ready).map((condition): NodeCondition => {
    const old = before.find((one) => one.type === condition.type)
    const unchanged = old?.status === condition.status && old.lastTransitionTime !== undefined
    return {
      ...condition,
      lastHeartbeatTime: now,
      lastTransitionTime: unchanged ? old.lastTransitionTime : now,
    }
  })
  const declaredFeatures = featuresOfKubelet(minorOf(spec.kubeletVersion)) ?? []
  const foreign = before.filter((one) => !own.some((condition) => condition.type === one.type))
  return {
    capacity: spec.capacity,
    allocatable: spec.allocatable,
    conditions: [...foreign, ...own],
    addresses: addresses(spec),
    nodeInfo: nodeInfo(spec),
    ...(declaredFeatures.length > 0 && { declaredFeatures }),
    daemonEndpoints: { kubeletEndpoint: { Port: kubeletPort } },
  }
}

/** Whether the Node's status differs from what its kubelet last reported. */
export function statusDiffers(spec: KubeletSpec, ready: boolean, node: Node): boolean {
  const status = node.status
  return (
    ownConditions(ready).some(
      (condition) =>
        status?.conditions?.find((one) => one.type === condition.type)?.status !== condition.status,
    ) ||
    amountsDiffer(spec.capacity, status?.capacity) ||
    amountsDiffer(spec.allocatable, status?.allocatable) ||
    status?.nodeInfo?.['systemUUID'] !== spec.systemUuid
  )
}

/** The server normalizes quantities, so different texts may be equal. */
function amountsDiffer(
  wanted: Readonly<Record<string, string>>,
  found: Readonly<Record<string, string>> | undefined,
): boolean {
  return Object.entries(wanted).some(([name, amount]) => {
    const reported = ownValue(found, name)
    if (reported === amount) return false
    return reported === undefined || parseResource(name, reported) !== parseResource(name, amount)
  })
}

export function newLease(
  nodeName: string,
  owner: OwnerReference,
  settings: KubeletSettings,
  nowMs: number,
): Lease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name: nodeName, namespace: leaseNamespace, ownerReferences: [owner] },
    spec: {
      holderIdentity: nodeName,
      leaseDurationSeconds: settings.leaseDurationSeconds,
      renewTime: rfc3339Micro(nowMs),
    },
  }
}

export function newCsiNode(nodeName: string, owner: OwnerReference, settings: KubeletSettings): CsiNode {
  return {
    apiVersion: 'storage.k8s.io/v1',
    kind: 'CSINode',
    metadata: { name: nodeName, ownerReferences: [owner] },
    spec: {
      drivers: settings.csiDrivers.map(({ name, topologyKeys, volumesPerNode }) => ({
        name,
        nodeID: nodeName,
        ...(topologyKeys === undefined ? {} : { topologyKeys }),
        ...(volumesPerNode === undefined ? {} : { allocatable: { count: volumesPerNode } }),
      })),
    },
  }
}

export function ownerOf(node: Node): OwnerReference {
  return { apiVersion: 'v1', kind: 'Node', name: node.metadata.name, uid: node.metadata.uid ?? '' }
}

function nodeLabels(spec: KubeletSpec): Record<string, string> {
  const arch = spec.labels['kubernetes.io/arch'] ?? 'amd64'
  const os = spec.labels['kubernetes.io/os'] ?? 'linux'
  return {
    'beta.kubernetes.io/arch': arch,
    'beta.kubernetes.io/os': os,
    'kubernetes.io/arch': arch,
    'kubernetes.io/os': os,
    [hostname]: spec.nodeName,
    ...spec.labels,
  }
}

function addresses(spec: KubeletSpec): KubeletSpec['addresses'] {
  return spec.addresses.some((one) => one.type === 'Hostname')
    ? spec.addresses
    : [...spec.addresses, { type: 'Hostname', address: spec.nodeName }]
}

function nodeInfo(spec: KubeletSpec): Readonly<Record<string, string>> {
  const labels = nodeLabels(spec)
  return {
    architecture: labels['kubernetes.io/arch'] ?? 'amd64',
    bootID: spec.systemUuid,
    containerRuntimeVersion: 'containerd://2.1.4',
    kernelVersion: '6.8.0',
    kubeProxyVersion: spec.kubeletVersion,
    kubeletVersion: spec.kubeletVersion,
    machineID: spec.systemUuid.replaceAll('-', ''),
    operatingSystem: labels['kubernetes.io/os'] ?? 'linux',
    osImage: 'Simulated Linux',
    systemUUID: spec.systemUuid,
  }
}

type OwnCondition = Pick<NodeCondition, 'type' | 'status'> & {
  readonly reason: string
  readonly message: string
}

const pressures: readonly OwnCondition[] = [
  {
    type: 'MemoryPressure',
    status: 'False',
    reason: 'KubeletHasSufficientMemory',
    message: 'kubelet has sufficient memory available',
  },
  {
    type: 'DiskPressure',
    status: 'False',
    reason: 'KubeletHasNoDiskPressure',
    message: 'kubelet has no disk pressure',
  },
  {
    type: 'PIDPressure',
    status: 'False',
    reason: 'KubeletHasSufficientPID',
    message: 'kubelet has sufficient PID available',
  },
]

const notReady: OwnCondition = {
  type: 'Ready',
  status: 'False',
  reason: 'KubeletNotReady',
  message: 'container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady',
}

const isReady: OwnCondition = {
  type: 'Ready',
  status: 'True',
  reason: 'KubeletReady',
  message: 'kubelet is posting ready status',
}

function ownConditions(ready: boolean): readonly OwnCondition[] {
  return [...pressures, ready ? isReady : notReady]
}
