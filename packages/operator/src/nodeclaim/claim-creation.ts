import { karpenterKinds, type NewObject, type NodeClaim, type NodePool } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { type LogFields, type Logger, type Random, randomString } from '@tenon/runtime'
import type { ClaimJournal, CreatedClaim } from '../journal/claim-journal.ts'
import type { Metrics } from '../metrics/metrics.ts'

/** As the API server generates names: valid as label values, without letters that are easily confused. */
const nameLimit = 63
const suffix = { length: 5, alphabet: 'bcdfghjklmnpqrstvwxz2456789' } as const

/** A random name for a claim of the pool. @param limit maximum length that the provider allows. */
export function freshClaimName(
  { metadata: { name } }: NodePool,
  random: Random,
  limit: number = nameLimit,
): string {
  const prefix = `${name}-`.slice(0, Math.max(1, limit - suffix.length))
  return prefix + randomString(random, suffix.length, suffix.alphabet)
}

/**
 * Creates a claim whose name was chosen before, so that a retry returns the claim of the first attempt.
 * @throws KubeError; `alreadyExists` if the name belongs to a claim of another NodePool.
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
    const isOwn = existing?.metadata.ownerReferences?.some(({ uid }) => uid === pool.metadata.uid) === true
    if (existing === undefined || !isOwn) throw error
    return existing
  }
}

/** Whether the server may have carried out the failed request, or may still do so. */
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

interface Creation extends CreatedClaim {
  readonly minValuesRelaxed: boolean
  /** Further fields of the log line. */
  readonly details?: LogFields
}

/** Counts, journals and logs created claims. */
export class ClaimCreations {
  readonly #metrics: Metrics
  readonly #journal: ClaimJournal
  readonly #logger: Logger

  constructor(metrics: Metrics, journal: ClaimJournal, logger: Logger) {
    this.#metrics = metrics
    this.#journal = journal
    this.#logger = logger
  }

  note({ minValuesRelaxed, details, ...created }: Creation): void {
    const { name, nodePool, reason } = created
    this.#journal.created(created)
    this.#metrics.nodeClaimsCreated.inc({
      reason,
      nodepool: nodePool,
      min_values_relaxed: String(minValuesRelaxed),
    })
    this.#logger.info('created nodeclaim', {
      NodePool: { name: nodePool },
      NodeClaim: { name },
      ...details,
    })
  }
}
