/** Labels, annotations, taints and finalizers of the Karpenter API (api.md 7, lifecycle.md 1). */

export const karpenterGroup = 'karpenter.sh'

/** Label keys that the core reads or writes. */
export const labels = {
  nodePool: 'karpenter.sh/nodepool',
  capacityType: 'karpenter.sh/capacity-type',
  registered: 'karpenter.sh/registered',
  initialized: 'karpenter.sh/initialized',
  doNotSyncTaints: 'karpenter.sh/do-not-sync-taints',
  zone: 'topology.kubernetes.io/zone',
  region: 'topology.kubernetes.io/region',
  instanceType: 'node.kubernetes.io/instance-type',
  arch: 'kubernetes.io/arch',
  os: 'kubernetes.io/os',
  hostname: 'kubernetes.io/hostname',
  windowsBuild: 'node.kubernetes.io/windows-build',
  excludeFromLoadBalancers: 'node.kubernetes.io/exclude-from-external-load-balancers',
} as const

/** Annotation keys that the core reads or writes. */
export const annotations = {
  doNotDisrupt: 'karpenter.sh/do-not-disrupt',
  nodePoolHash: 'karpenter.sh/nodepool-hash',
  nodePoolHashVersion: 'karpenter.sh/nodepool-hash-version',
  terminationTimestamp: 'karpenter.sh/nodeclaim-termination-timestamp',
  /** Comma-separated DRA drivers whose devices the claim's pods request. */
  requestedDraDrivers: 'karpenter.sh/requested-dra-drivers',
  minValuesRelaxed: 'karpenter.sh/nodeclaim-min-values-relaxed',
  /** Marks placeholder pods of CapacityBuffers, which exist only in memory. */
  bufferPod: 'karpenter.sh/capacity-buffer-fake-pod',
  bufferName: 'karpenter.sh/capacity-buffer-name',
  bufferNamespace: 'karpenter.sh/capacity-buffer-namespace',
} as const

/** On NodeClaims and Nodes: blocks their deletion until the instance is gone. */
export const terminationFinalizer = 'karpenter.sh/termination'

export const capacityTypes = { spot: 'spot', onDemand: 'on-demand', reserved: 'reserved' } as const

/** On nodes that are being disrupted. */
export const disruptedTaint = { key: 'karpenter.sh/disrupted', effect: 'NoSchedule' } as const
/** On nodes that their claim has not registered yet. */
export const unregisteredTaint = { key: 'karpenter.sh/unregistered', effect: 'NoExecute' } as const

/** Labels that the core knows; providers add theirs at start-up (api.md 7.1). */
export const wellKnownLabels: readonly string[] = [
  labels.nodePool,
  labels.zone,
  labels.region,
  labels.instanceType,
  labels.arch,
  labels.os,
  labels.capacityType,
  labels.windowsBuild,
]

// A Map and not an object, as users choose the keys that are looked up: `constructor` is a valid one.
const aliases: ReadonlyMap<string, string> = new Map([
  ['failure-domain.beta.kubernetes.io/zone', labels.zone],
  ['failure-domain.beta.kubernetes.io/region', labels.region],
  ['beta.kubernetes.io/arch', labels.arch],
  ['beta.kubernetes.io/os', labels.os],
  ['beta.kubernetes.io/instance-type', labels.instanceType],
])

/** Maps deprecated label keys to their current names (api.md 7.4). */
export function normalizedLabel(key: string): string {
  return aliases.get(key) ?? key
}

/** The label of NodeClaims and Nodes that names their node class (api.md 7.5). */
export function nodeClassLabel(ref: { readonly group: string; readonly kind: string }): string {
  return `${ref.group}/${ref.kind.toLowerCase()}`
}
