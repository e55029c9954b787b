/** Observed NodePools: decisions about them are made and recorded, but not carried out. */
import { conditionOf, isConditionTrue, type NodePool, ownValue } from '@tenon/api'
import type { WorkGate } from '@tenon/kube'
import type { Caches } from '../caches.ts'
import { nodeClassOf } from './managed-pool.ts'
import type { Settings } from '../../settings.ts'

export const modeAnnotation = 'tenon.sh/mode'
export const observeMode = 'observe'

/** Why a NodePool is left out of a decision. */
interface Aside {
  readonly code: 'notReady' | 'observed'
  /** A clause without a full stop. */
  readonly because: string
}

export interface PoolChoice {
  list(): readonly NodePool[]
  aside(pool: NodePool): Aside | undefined
}

/** `acting`: decisions are carried out; `observed`: they are only recorded; `any`: both. */
export type PoolKind = 'acting' | 'observed' | 'any'

export class ObservedPools {
  readonly #caches: Pick<Caches, 'nodeClasses' | 'nodePools'>
  /** Whether this process only observes, whatever NodePools say. */
  readonly isAll: boolean
  readonly #beside: WorkGate | undefined

  /** @param beside closed while another controller serves the same NodePools, and this one only observes. */
  constructor(
    caches: Pick<Caches, 'nodeClasses' | 'nodePools'>,
    { observeOnly }: Pick<Settings, 'observeOnly'>,
    beside?: WorkGate,
  ) {
    this.#caches = caches
    this.isAll = observeOnly
    this.#beside = beside
  }

  get #isAllNow(): boolean {
    return this.isAll || this.#beside?.isOpen === false
  }

  get isAny(): boolean {
    return this.#isAllNow || this.#caches.nodePools.list().some(isObserved)
  }

  has(name: string): boolean {
    if (this.#isAllNow) return true
    const pool = this.#caches.nodePools.get({ name })
    return pool !== undefined && isObserved(pool)
  }

  choice(kind: PoolKind): PoolChoice {
    return {
      list: () => this.#caches.nodePools.list(),
      aside: (pool) => this.#modeAside(pool, kind) ?? this.#readinessAside(pool),
    }
  }

  #modeAside(pool: NodePool, kind: PoolKind): Aside | undefined {
    if (kind === 'any') return undefined
    const isOnlyObserved = this.#isAllNow || isObserved(pool)
    if (isOnlyObserved === (kind === 'observed')) return undefined
    if (!isOnlyObserved) return { code: 'observed', because: 'it is not only observed' }
    const because = isObserved(pool) ? observedText : 'another controller serves it, too'
    return { code: 'observed', because }
  }

  /** A process that only observes writes no conditions, so it checks the node class itself. */
  #readinessAside(pool: NodePool): Aside | undefined {
    if (isConditionTrue(pool, 'Ready')) return undefined
    const message = conditionOf(pool, 'Ready')?.message ?? 'not reconciled yet'
    if (!this.isAll) return { code: 'notReady', because: message }
    const nodeClass = nodeClassOf(this.#caches, pool)
    if (nodeClass === undefined) return { code: 'notReady', because: 'its node class does not exist' }
    return nodeClass.metadata.deletionTimestamp === undefined
      ? undefined
      : { code: 'notReady', because: 'its node class is being deleted' }
  }
}

export const observedText = `it is only observed (annotation ${modeAnnotation}: ${observeMode})`

export function isObserved({ metadata }: Pick<NodePool, 'metadata'>): boolean {
  return ownValue(metadata.annotations, modeAnnotation) === observeMode
}

export function modeProblem({ metadata }: Pick<NodePool, 'metadata'>): string | undefined {
  const mode = ownValue(metadata.annotations, modeAnnotation)
  return mode === undefined || mode === observeMode ? undefined : `"${mode}" is no mode`
}
