/** Names of Clever Cloud and of this provider (clever-cloud.md 1, 4). */

/** API group of CleverNodeClass, and domain of this provider's labels. */
export const providerDomain = 'karpenter.clever-cloud.com'

/** Labels, annotations and finalizers of this provider. */
export const ownNames = {
  /** On a NodeGroup: `true` if Tenon created it. */
  managed: `${providerDomain}/managed`,
  /** On a NodeGroup: name of its NodeClaim. */
  nodeClaim: `${providerDomain}/nodeclaim`,
  /** On a NodeGroup: name of its NodePool; empty if the claim has none. */
  nodePool: `${providerDomain}/nodepool`,
  /** On a NodeGroup: name of its CleverNodeClass. */
  nodeClass: `${providerDomain}/nodeclass`,
  /** Annotation of a NodeGroup: hash of the node class at its creation. */
  hash: `${providerDomain}/clevernodeclass-hash`,
  /** Annotation of a NodeGroup: version of that hash; absent for `v1`. */
  hashVersion: `${providerDomain}/clevernodeclass-hash-version`,
  /** Finalizer of a CleverNodeClass. */
  termination: `${providerDomain}/termination`,
  /** Label of a node: number of its vCPUs. */
  instanceCpu: `${providerDomain}/instance-cpu`,
  /** Label of a node: its memory in KiB. */
  instanceMemory: `${providerDomain}/instance-memory`,
} as const

/** Labels that Clever Cloud sets on its nodes. */
export const platformLabels = {
  nodeGroup: 'clever-cloud.com/nodegroup',
  flavor: 'clever-cloud.com/flavor',
  /** `worker` or `control-plane`. */
  role: 'clever-cloud.com/cluster-node-role',
} as const

/** Zone and region unless `CLEVER_CLOUD_REGION` is set. */
export const defaultRegion = 'par'

const providerIdPrefix = 'clevercloud://'

/** The provider ID of a NodeGroup's node. */
export function providerIdOf(nodeGroup: string): string {
  return `${providerIdPrefix}${nodeGroup}`
}

/** The NodeGroup in a provider ID; undefined if the ID belongs to another provider. */
export function nodeGroupIn(providerID: string): string | undefined {
  const name = providerID.startsWith(providerIdPrefix) ? providerID.slice(providerIdPrefix.length) : ''
  return name === '' ? undefined : name
}

/** The name of the node of a NodeGroup with one node. */
export function firstNodeOf(nodeGroup: string): string {
  return `${nodeGroup}-node0`
}
