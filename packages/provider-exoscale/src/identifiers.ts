/** Names that this provider writes and reads. They must not change, because existing clusters use them. */

export const providerName = 'exoscale'

export const instanceLabels = {
  managedBy: 'exoscale.com/managed-by',
  clusterId: 'exoscale.com/cluster-id',
  nodeClaim: 'exoscale.com/node-claim',
  nodePool: 'exoscale.com/nodepool-name',
} as const

/** Value of {@link instanceLabels.managedBy} on all our instances. */
export const managedByValue = 'karpenter'

export const tokenLabel = { key: 'exoscale.com/token-provider', value: 'karpenter-exoscale' } as const

export const exoscaleAnnotations = {
  /** On token Secrets: the NodeClaim. On Nodes of older installations: the Secret. */
  bootstrapToken: 'exoscale.com/bootstrap-token',
  tokenCreated: 'exoscale.com/token-created',
  nodeRegistered: 'exoscale.com/node-registered',
  /** On NodeClaims: the template of the node class at launch, or when Tenon adopted the claim. */
  resolvedTemplate: 'exoscale.com/resolved-template',
  /** On NodeClaims: hash of the node class fields whose changes need a new instance. */
  nodeClassHash: 'exoscale.com/node-class-hash',
  /** On NodeClaims: id of an instance that was created but that the cloud did not return at once. */
  instance: 'exoscale.com/instance-id',
} as const

/** Requirement keys in addition to those of the core. */
export const exoscaleLabels = {
  family: 'exoscale.com/instance-family',
  size: 'exoscale.com/instance-size',
  gpuCount: 'karpenter.sh/instance-gpu-count',
  accelerator: 'karpenter.sh/instance-accelerator',
} as const

/**
 * The well-known labels of the provider, in addition to those of the core: NodePools and pods select instance types by
 * them. Not those of `karpenter.sh`, which pods may not select.
 */
export const choosableLabels: readonly string[] = [exoscaleLabels.family, exoscaleLabels.size]

export const gpuResource = 'nvidia.com/gpu'
export const podsPerNode = 110
export const nodeClassFinalizer = 'exoscale.com/nodeclass-finalizer'

const providerIdPrefix = 'exoscale://'
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** Whether it is a UUID in canonical lower-case form. */
export function isUuid(text: string): boolean {
  return uuidPattern.test(text)
}

export function providerIdOf(instanceId: string): string {
  return `${providerIdPrefix}${instanceId}`
}

/** The instance id in a provider ID, or why there is none. */
export type ParsedProviderId =
  | { readonly kind: 'instance'; readonly instanceId: string }
  | { readonly kind: 'wrongPrefix' | 'emptyId' | 'notUuid'; readonly message: string }

/** @param providerId of an object, which may be invalid. */
export function parseProviderId(providerId: unknown): ParsedProviderId {
  if (typeof providerId !== 'string')
    return { kind: 'wrongPrefix', message: `provider ID ${JSON.stringify(providerId)} is not a string` }
  if (!providerId.startsWith(providerIdPrefix)) {
    return {
      kind: 'wrongPrefix',
      message: `provider ID "${providerId}" does not start with ${providerIdPrefix}`,
    }
  }
  const instanceId = providerId.slice(providerIdPrefix.length)
  if (instanceId === '') return { kind: 'emptyId', message: `provider ID "${providerId}" has no instance id` }
  if (!isUuid(instanceId)) {
    return { kind: 'notUuid', message: `provider ID "${providerId}" holds no lower-case UUID` }
  }
  return { kind: 'instance', instanceId }
}
