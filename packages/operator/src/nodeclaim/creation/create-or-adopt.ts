/** Creates a claim once, whatever becomes of the answers. */
import { karpenterKinds, type NewObject, type NodeClaim, type NodePool } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { type Random, randomString } from '@tenon/runtime'

/** As the API server generates names: cut so that they stay valid labels, without ambiguous letters. */
const nameLimit = 63
const suffix = { length: 5, alphabet: 'bcdfghjklmnpqrstvwxz2456789' } as const

/**
 * A name for a claim of the pool that no other one is likely to have.
 * @param limit of the provider, in characters.
 */
export function freshClaimName(
  { metadata: { name } }: NodePool,
  random: Random,
  limit: number = nameLimit,
): string {
  const prefix = `${name}-`.slice(0, Math.max(1, limit - suffix.length))
  return prefix + randomString(random, suffix.length, suffix.alphabet)
}

/**
 * Creates a claim of a name that was chosen for it; creating it again answers the same claim.
 * @throws KubeError; `alreadyExists` when the name is taken by a claim of another NodePool.
 */
export async function createOrAdopt(
  client: Pick<KubeClient, 'create' | 'get'>,
  pool: NodePool,
  object: NewObject<NodeClaim> & { readonly metadata: { readonly name: string } },
  signal: AbortSignal,
): Promise<NodeClaim> {
  try {
    return await client.create(karpenterKinds.nodeClaim, object, { signal })
  } catch (error) {
    if (!isKubeError(error, 'alreadyExists')) throw error
    const { name } = object.metadata
    const existing = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
    // What an earlier attempt has made; a claim of anybody else's is in the way.
    const isOwn = existing?.metadata.ownerReferences?.some(({ uid }) => uid === pool.metadata.uid) === true
    if (existing === undefined || !isOwn) throw error
    return existing
  }
}

/** Whether the server may have carried out, or may yet carry out, what it was asked. */
export function isUnclear(error: unknown): boolean {
  return !isKubeError(
    error,
    'notFound',
    'alreadyExists',
    'conflict',
    'gone',
    'invalid',
    'forbidden',
    'unauthorized',
    'tooManyRequests',
  )
}
