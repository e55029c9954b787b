/** The NodePools that are only observed, and those that decisions of either kind may launch nodes of. */
import { conditionOf, isConditionTrue, type NodePool } from '@tenon/api'
import type { Caches } from '../caches.ts'
import { nodeClassOf } from './managed-pool.ts'
import type { Settings } from '../../settings.ts'
import { isObserved, modeAnnotation, observeMode } from './mode.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClasses' | 'nodePools'>
  readonly settings: Pick<Settings, 'observeOnly'>
}

/** Why a NodePool takes no part in a decision. */
interface Aside {
  readonly code: 'notReady' | 'observed'
  /** A clause without a full stop. */
  readonly because: string
}

/** NodePools for decisions to choose from. */
export interface PoolChoice {
  /** All of them, in the order of the cache. */
  list(): readonly NodePool[]
  /** Why this one takes no part; undefined when it does. */
  aside(pool: NodePool): Aside | undefined
}

/** `acting`: what is decided is carried out; `observed`: it is only noted; `any`: both. */
export type PoolKind = 'acting' | 'observed' | 'any'

export class ObservedPools {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Whether this process only observes, whatever NodePools say. */
  get isAll(): boolean {
    return this.#deps.settings.observeOnly
  }

  /** Whether there is any such NodePool. */
  get isAny(): boolean {
    return this.isAll || this.#deps.caches.nodePools.list().some(isObserved)
  }

  /** @param name of a NodePool. */
  has(name: string): boolean {
    if (this.isAll) return true
    const pool = this.#deps.caches.nodePools.get({ name })
    return pool !== undefined && isObserved(pool)
  }

  choice(kind: PoolKind): PoolChoice {
    const { caches } = this.#deps
    return {
      list: () => caches.nodePools.list(),
      aside: (pool) => this.#modeAside(pool, kind) ?? this.#readinessAside(pool),
    }
  }

  #modeAside(pool: NodePool, kind: PoolKind): Aside | undefined {
    if (kind === 'any') return undefined
    const isOnlyObserved = this.isAll || isObserved(pool)
    if (isOnlyObserved === (kind === 'observed')) return undefined
    return { code: 'observed', because: isOnlyObserved ? observedText : 'it is not only observed' }
  }

  /** Where this process writes no condition of NodePools, it goes by what there is. */
  #readinessAside(pool: NodePool): Aside | undefined {
    if (isConditionTrue(pool, 'Ready')) return undefined
    const message = conditionOf(pool, 'Ready')?.message ?? 'not reconciled yet'
    if (!this.isAll) return { code: 'notReady', because: message }
    const nodeClass = nodeClassOf(this.#deps.caches, pool)
    if (nodeClass === undefined) return { code: 'notReady', because: 'its node class does not exist' }
    return nodeClass.metadata.deletionTimestamp === undefined
      ? undefined
      : { code: 'notReady', because: 'its node class is being deleted' }
  }
}

/** What is said of a NodePool that decisions leave out because it is only observed. */
export const observedText = `it is only observed (annotation ${modeAnnotation}: ${observeMode})`
