/** Names that Clever Cloud and this provider give to things (clever-cloud.md 1, 4). */

/** API group of CleverNodeClass and domain of the labels of this provider. */
export const providerDomain = 'karpenter.clever-cloud.com'

/** Labels, annotations and finalizers of this provider. */
export const ownNames = {
  /** On a NodeGroup: `true` on those that Tenon made. */
  managed: `${providerDomain}/managed`,
  /** On a NodeGroup: name of its NodeClaim. */
  nodeClaim: `${providerDomain}/nodeclaim`,
  /** On a NodeGroup: name of its NodePool; empty when the claim has none. */
  nodePool: `${providerDomain}/nodepool`,
  /** On a NodeGroup: name of its CleverNodeClass. */
  nodeClass: `${providerDomain}/nodeclass`,
  /** Annotation of a NodeGroup: hash of the node class it was made from. */
  hash: `${providerDomain}/clevernodeclass-hash`,
  /** Annotation of a NodeGroup: how that hash was computed; absent for `v1`. */
  hashVersion: `${providerDomain}/clevernodeclass-hash-version`,
  /** Finalizer of a CleverNodeClass. */
  termination: `${providerDomain}/termination`,
  /** Label of a node: number of its vCPUs. */
  instanceCpu: `${providerDomain}/instance-cpu`,
  /** Label of a node: its memory in KiB. */
  instanceMemory: `${providerDomain}/instance-memory`,
} as const

/** Labels that Clever Cloud gives its nodes. */
export const platformLabels = {
  nodeGroup: 'clever-cloud.com/nodegroup',
  flavor: 'clever-cloud.com/flavor',
  /** `worker` or `control-plane`. */
  role: 'clever-cloud.com/cluster-node-role',
} as const

/** Zone and region unless `CLEVER_CLOUD_REGION` says otherwise. */
export const defaultRegion = 'par'

const providerIdPrefix = 'clevercloud://'

/** The provider ID of the node of a NodeGroup. */
export function providerIdOf(nodeGroup: string): string {
  return `${providerIdPrefix}${nodeGroup}`
}

/** The NodeGroup that a provider ID names; undefined when it is not one of this provider. */
export function nodeGroupIn(providerID: string): string | undefined {
  const name = providerID.startsWith(providerIdPrefix) ? providerID.slice(providerIdPrefix.length) : ''
  return name === '' ? undefined : name
}

/** The name of the only node of a NodeGroup of one. */
export function firstNodeOf(nodeGroup: string): string {
  return `${nodeGroup}-node0`
}
