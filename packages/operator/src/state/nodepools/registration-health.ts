/** How the last launches of each NodePool ended (lifecycle.md 3.6, cluster-state.md 13). */
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

/** Condition of a NodePool; nothing depends on it. */
export const registrationHealthy = 'NodeRegistrationHealthy'
const samplesKept = 4
/** So many failures of the samples kept make a pool unhealthy. */
const failuresTolerated = 1

/** Why a claim did not become a node, as the condition tells it. */
export interface RegistrationFailure {
  readonly reason: string
  readonly message: string
}

interface PoolHealth {
  /** Whether each launch succeeded, the latest last. */
  readonly samples: readonly boolean[]
  /** What the last sample that decided anything decided. */
  readonly verdict?: NewCondition
}

/** Remembers the last four outcomes of every NodePool, by its UID. */
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
   * Notes that a claim has become a node or, with `failure`, that it was given up. Claims that the
   * NodePool of their label does not own do not count: it may be another one of the same name.
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

  /** The condition that the samples ask for; undefined while they ask for none. */
  verdictOn(pool: NodePool): NewCondition | undefined {
    return this.#of(pool).verdict
  }

  /** Forgets the samples: they tell nothing about what the pool launches from now on. */
  reset({ metadata: { uid = '' } }: NodePool): void {
    this.#healthByUid.set(uid, { samples: [] })
  }

  /** What is known of a pool; after a restart only its condition remembers. */
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
