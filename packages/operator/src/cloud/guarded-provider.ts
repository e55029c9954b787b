import { type InstanceType, labels, type NodeClaim, type NodePool } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { type CloudProvider, decorated, isProviderError } from '@tenon/provider'
import type { LaunchGuard } from './launch-guard.ts'

/**
 * The provider as decisions and launches use it: it lists nothing as available that failed lately, and
 * launches around it.
 * @param listing lists the types a launch may choose from; not measured as calls of the launch.
 */
export function guardedProvider(
  provider: CloudProvider,
  listing: Pick<CloudProvider, 'getInstanceTypes'>,
  guard: LaunchGuard,
  nodePools: Cache<NodePool>,
): CloudProvider {
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool, signal) =>
    guard.usable(await provider.getInstanceTypes(pool, signal), pool)
  const typesOf = async (claim: NodeClaim, signal?: AbortSignal): Promise<readonly InstanceType[]> => {
    const pool = nodePools.get({ name: claim.metadata.labels?.[labels.nodePool] ?? '' })
    if (pool === undefined) return []
    try {
      return await listing.getInstanceTypes(pool, signal)
    } catch (error) {
      signal?.throwIfAborted()
      if (!isProviderError(error)) throw error
      // Whether the claim can be launched without a list is the provider's to say, in its own words.
      return []
    }
  }
  const create: CloudProvider['create'] = async (claim, signal) => {
    const types = await typesOf(claim, signal)
    const createOf = (offered: readonly InstanceType[]) =>
      provider.create(claim, signal, types.length === 0 ? undefined : offered)
    return await guard.launch(claim, types, createOf, signal)
  }
  return decorated(provider, { getInstanceTypes, create })
}
