/** Names that this provider writes and reads. They must not change, because existing fleets use them. */

export const providerName = 'exoscale'

export const instanceLabels = {
  managedBy: 'exoscale.com/managed-by',
  clusterId: 'exoscale.com/cluster-id',
  nodeClaim: 'exoscale.com/node-claim',
  nodePool: 'exoscale.com/nodepool-name',
} as const

/** Value of {@link instanceLabels.managedBy} on every instance of ours. */
export const managedByValue = 'karpenter'

export const tokenLabel = { key: 'exoscale.com/token-provider', value: 'karpenter-exoscale' } as const

export const exoscaleAnnotations = {
  /** On token Secrets: the NodeClaim. On Nodes of older installations: the Secret. */
  bootstrapToken: 'exoscale.com/bootstrap-token',
  tokenCreated: 'exoscale.com/token-created',
  nodeRegistered: 'exoscale.com/node-registered',
  /** On NodeClaims: the template its class resolved to at launch, or when Tenon took the claim over. */
  resolvedTemplate: 'exoscale.com/resolved-template',
  /** On NodeClaims: hash of the class fields that only a new instance can take up. */
  nodeClassHash: 'exoscale.com/node-class-hash',
  /** On NodeClaims: id of the instance that was made and that the cloud did not show at once. */
  instance: 'exoscale.com/instance-id',
} as const

/** Requirement keys beyond the core's. */
export const exoscaleLabels = {
  family: 'exoscale.com/instance-family',
  size: 'exoscale.com/instance-size',
  gpuCount: 'karpenter.sh/instance-gpu-count',
  accelerator: 'karpenter.sh/instance-accelerator',
} as const

/** Label keys by which NodePools choose instance types, beyond the core's. */
export const choosableLabels: readonly string[] = [exoscaleLabels.family, exoscaleLabels.size]

export const gpuResource = 'nvidia.com/gpu'
export const podsPerNode = 110
export const nodeClassFinalizer = 'exoscale.com/nodeclass-finalizer'

const providerIdPrefix = 'exoscale://'
const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** True for a UUID in canonical lower-case form. */
export function isUuid(text: string): boolean {
  return uuidPattern.test(text)
}

export function providerIdOf(instanceId: string): string {
  return `${providerIdPrefix}${instanceId}`
}

/** The instance id inside a provider ID, or why there is none. */
export type ParsedProviderId =
  | { readonly kind: 'instance'; readonly instanceId: string }
  | { readonly kind: 'wrongPrefix' | 'emptyId' | 'notUuid'; readonly message: string }

/** @param providerId as an object has it, which may be misshapen. */
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
