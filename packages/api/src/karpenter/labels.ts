/** Names on the wire of the Karpenter API (api.md 7, lifecycle.md 1). */

/** API group of NodePools and NodeClaims. */
export const karpenterGroup = 'karpenter.sh'

/** Label keys the core reads or writes. */
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

/** Annotation keys of the core. */
export const annotations = {
  doNotDisrupt: 'karpenter.sh/do-not-disrupt',
  nodePoolHash: 'karpenter.sh/nodepool-hash',
  nodePoolHashVersion: 'karpenter.sh/nodepool-hash-version',
  terminationTimestamp: 'karpenter.sh/nodeclaim-termination-timestamp',
  /** Comma-separated DRA drivers whose devices the claim's pods ask for. */
  requestedDraDrivers: 'karpenter.sh/requested-dra-drivers',
  minValuesRelaxed: 'karpenter.sh/nodeclaim-min-values-relaxed',
  /** On pods that stand for the room of a CapacityBuffer and that no API server knows. */
  bufferPod: 'karpenter.sh/capacity-buffer-fake-pod',
  bufferName: 'karpenter.sh/capacity-buffer-name',
  bufferNamespace: 'karpenter.sh/capacity-buffer-namespace',
} as const

/** On NodeClaims and Nodes; gates their deletion. */
export const terminationFinalizer = 'karpenter.sh/termination'

/** Values of the capacity type label. */
export const capacityTypes = { spot: 'spot', onDemand: 'on-demand', reserved: 'reserved' } as const

/** On nodes that are going away. */
export const disruptedTaint = { key: 'karpenter.sh/disrupted', effect: 'NoSchedule' } as const
/** On nodes until their claim has registered them. */
export const unregisteredTaint = { key: 'karpenter.sh/unregistered', effect: 'NoExecute' } as const

/** Labels every part of the core understands; providers add theirs at start-up (api.md 7.1). */
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

// A map and no record: users choose the keys that are looked up, `constructor` among them.
const aliases: ReadonlyMap<string, string> = new Map([
  ['failure-domain.beta.kubernetes.io/zone', labels.zone],
  ['failure-domain.beta.kubernetes.io/region', labels.region],
  ['beta.kubernetes.io/arch', labels.arch],
  ['beta.kubernetes.io/os', labels.os],
  ['beta.kubernetes.io/instance-type', labels.instanceType],
])

/** The present name of a label key that older manifests spell differently (api.md 7.4). */
export function normalizedLabel(key: string): string {
  return aliases.get(key) ?? key
}

/** Label that ties claims and nodes to their node class (api.md 7.5). */
export function nodeClassLabel(ref: { readonly group: string; readonly kind: string }): string {
  return `${ref.group}/${ref.kind.toLowerCase()}`
}
