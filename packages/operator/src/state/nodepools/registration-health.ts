/** Outcomes of the last launches of each NodePool (lifecycle.md 3.6, cluster-state.md 13). */
import { Listeners } from '@tenon/runtime'
import {
  conditionOf,
  isConditionTrue,
  labels,
  type NewCondition,
  type NodeClaim,
  type NodePool,
} from '@tenon/api'
import type { Cache } from '@tenon/kube'

/** A condition of NodePools; Ready does not depend on it. */
export const registrationHealthy = 'NodeRegistrationHealthy'
const samplesKept = 4
/** More failed samples make a pool unhealthy. */
const failuresTolerated = 1

export interface RegistrationFailure {
  readonly reason: string
  readonly message: string
}

interface PoolHealth {
  /** Whether each launch succeeded; latest last. */
  readonly samples: readonly boolean[]
  /** The condition after the last sample that changed it. */
  readonly verdict?: NewCondition
}

export class RegistrationHealth {
  readonly #pools: Pick<Cache<NodePool>, 'get'>
  readonly #healthByUid = new Map<string, PoolHealth>()
  /** Names of NodePools whose condition may have to change. */
  readonly samples: Listeners<string> = new Listeners()

  constructor(pools: Pick<Cache<NodePool>, 'get' | 'onChange'>) {
    this.#pools = pools
    pools.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#healthByUid.delete(object.metadata.uid ?? '')
    })
  }

  /**
   * Records that a claim registered or, with `failure`, was given up. Claims of an earlier NodePool of the same name do not
   * count.
   */
  record(claim: NodeClaim, failure?: RegistrationFailure): void {
    const pool = this.#pools.get({ name: claim.metadata.labels?.[labels.nodePool] ?? '' })
    if (pool === undefined || !isOwner(pool, claim)) return
    const { samples, verdict } = this.#of(pool)
    const after = [...samples, failure === undefined].slice(-samplesKept)
    const isHealthy = after.filter((isSuccess) => !isSuccess).length <= failuresTolerated
    let decided = verdict
    if (failure === undefined && isHealthy) decided = { type: registrationHealthy, status: 'True' }
    else if (failure !== undefined && !isHealthy && verdict?.status !== 'False')
      decided = { type: registrationHealthy, status: 'False', ...failure }
    this.#healthByUid.set(pool.metadata.uid ?? '', { samples: after, ...(decided && { verdict: decided }) })
    this.samples.notify(pool.metadata.name)
  }

  /** The condition after the samples; undefined if they are inconclusive. */
  verdictOn(pool: NodePool): NewCondition | undefined {
    return this.#of(pool).verdict
  }

  /** After a change of the pool, earlier launches say nothing about later ones. */
  reset({ metadata: { uid = '' } }: NodePool): void {
    this.#healthByUid.set(uid, { samples: [] })
  }

  /** After a restart, samples are derived from the condition. */
  #of(pool: NodePool): PoolHealth {
    const known = this.#healthByUid.get(pool.metadata.uid ?? '')
    if (known !== undefined) return known
    if (isConditionTrue(pool, registrationHealthy)) return { samples: [true] }
    const isUnhealthy = conditionOf(pool, registrationHealthy)?.status === 'False'
    return { samples: isUnhealthy ? [false, false] : [] }
  }
}

function isOwner(pool: NodePool, claim: NodeClaim): boolean {
  return (claim.metadata.ownerReferences ?? []).some(
    ({ kind, uid }) => kind === pool.kind && uid === pool.metadata.uid,
  )
}
