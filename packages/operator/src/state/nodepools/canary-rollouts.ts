/** Canary rollouts: a few drifted nodes are replaced first, and watched (ask.md 9). */
import { controllerOf, isConditionTrue, type NodeClaim, type NodePool, ownValue, type Pod } from '@tenon/api'
import { type Clock, Listeners } from '@tenon/runtime'
import { readPause } from '../pause.ts'
import { type Caches, indexes } from '../caches.ts'
import { isPodReady } from '../pods/pods.ts'
import { nodeClassOf } from './managed-pool.ts'
import {
  canaryCount,
  readRecord,
  rolloutAnnotations,
  type RolloutRecord,
  rolloutSettings,
  type RolloutSettings,
  type Watched,
} from './rollout-settings.ts'

/** On replacement claims: names of the claims they replace. */
const replacesAnnotation = 'tenon.sh/replaces'
/** Older replacements belong to an earlier rollout. */
const recentMs = 30 * 60_000

/** Why no further drifted node of a NodePool is replaced. */
export type RolloutHold =
  | { readonly kind: 'invalid'; readonly because: string }
  | { readonly kind: 'paused'; readonly because: string }
  | { readonly kind: 'halted'; readonly because: string }
  /** The canaries are launching or being watched. */
  | { readonly kind: 'watching'; readonly because: string }

interface Known {
  readonly uid: string
  record: RolloutRecord
}

export class CanaryRollouts {
  readonly #caches: Pick<Caches, 'nodeClaims' | 'nodeClasses' | 'nodePools'>
  readonly #clock: Pick<Clock, 'now'>
  /** By name of the NodePool. */
  readonly #known = new Map<string, Known>()
  /** Names of NodePools whose rollout has to be reconciled. */
  readonly changes: Listeners<string> = new Listeners()

  constructor(caches: Pick<Caches, 'nodeClaims' | 'nodeClasses' | 'nodePools'>, clock: Pick<Clock, 'now'>) {
    this.#caches = caches
    this.#clock = clock
    caches.nodePools.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#known.delete(object.metadata.name)
    })
  }

  /** Undefined for a NodePool without canaries. */
  settingsOf(pool: NodePool): RolloutSettings | undefined {
    const reading = rolloutSettings(pool)
    return reading.kind === 'careful' ? reading.settings : undefined
  }

  /** The rollout since the last change of the NodePool or node class. */
  recordOf(pool: NodePool): RolloutRecord {
    const { name, uid = name } = pool.metadata
    const of = this.#keyOf(pool)
    const known = this.#known.get(name)
    const record = known?.uid === uid ? known.record : this.#restored(pool, of)
    const current = record.of === of ? record : emptyRecord(of)
    if (known?.uid !== uid || known.record !== current) this.#known.set(name, { uid, record: current })
    return current
  }

  keep(pool: NodePool, record: RolloutRecord): void {
    const { name, uid = name } = pool.metadata
    this.#known.set(name, { uid, record })
  }

  /** Restarts the rollout. */
  reset(pool: NodePool): void {
    this.keep(pool, emptyRecord(this.#keyOf(pool)))
    this.changes.notify(pool.metadata.name)
  }

  /** Records replacements of drifted nodes. @param pods of the drifted nodes. */
  begun(poolName: string, claims: readonly NodeClaim[], pods: readonly Pod[]): void {
    const pool = this.#caches.nodePools.get({ name: poolName })
    if (pool === undefined || this.settingsOf(pool) === undefined) return
    const owners = [...new Set(pods.filter(isPodReady).flatMap((pod) => controllerOf(pod)?.uid ?? []))]
    const sinceMs = this.#clock.now()
    const record = this.recordOf(pool)
    const added = claims
      .filter(({ metadata }) => !record.replacements.some(({ claim }) => claim === metadata.name))
      .map(({ metadata }): Watched => ({ claim: metadata.name, sinceMs, owners }))
    this.keep(pool, { ...record, replacements: [...record.replacements, ...added] })
    this.changes.notify(poolName)
  }

  /** Why no drifted node of the NodePool may be replaced, canary or not. */
  stopOf(pool: NodePool): RolloutHold | undefined {
    const pause = readPause(ownValue(pool.metadata.annotations, rolloutAnnotations.paused) ?? 'false')
    if (pause.kind !== 'none' && this.#clock.now() < (pause.value.untilMs ?? Infinity)) {
      const why = pause.value.reason === undefined ? '' : `: ${pause.value.reason}`
      return { kind: 'paused', because: `the rollout is paused (${rolloutAnnotations.paused})${why}` }
    }
    const reading = rolloutSettings(pool)
    if (reading.kind === 'invalid') {
      const because = reading.problems.map(({ field, message, fix }) => `${field}: ${message}; ${fix ?? ''}`)
      return { kind: 'invalid', because: because.join('; ') }
    }
    if (reading.kind === 'none' || this.recordOf(pool).halted === undefined) return undefined
    return { kind: 'halted', because: 'too many replacements are unhealthy, see condition RolloutHalted' }
  }

  /**
   * How many more drifted nodes of the NodePool may be replaced now; budgets apply in addition.
   * @param poolNodes number of its nodes.
   */
  room(pool: NodePool, poolNodes: number): number {
    if (this.stopOf(pool) !== undefined) return 0
    const settings = this.settingsOf(pool)
    if (settings === undefined) return Number.POSITIVE_INFINITY
    const { hasPassed, replacements } = this.recordOf(pool)
    if (hasPassed) return Number.POSITIVE_INFINITY
    return Math.max(0, canaryCount(settings, poolNodes) - replacements.length)
  }

  /** Why {@link room} is 0. */
  holdOf(pool: NodePool, poolNodes: number): RolloutHold | undefined {
    const stop = this.stopOf(pool)
    if (stop !== undefined || this.room(pool, poolNodes) > 0) return stop
    return { kind: 'watching', because: 'the first replacements are watched before others are made' }
  }

  /** Drifted claims of the NodePool that are not being deleted. */
  drifted(pool: NodePool): readonly NodeClaim[] {
    return this.#claimsOf(pool).filter((claim) => isConditionTrue(claim, 'Drifted'))
  }

  #claimsOf({ metadata: { name } }: NodePool): readonly NodeClaim[] {
    return this.#caches.nodeClaims
      .byIndex(indexes.byNodePool, name)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  }

  #restored(pool: NodePool, of: string): RolloutRecord {
    const text = ownValue(pool.metadata.annotations, rolloutAnnotations.state)
    const stored = (text === undefined ? undefined : readRecord(text)) ?? emptyRecord(of)
    if (stored.of !== of || stored.hasPassed || this.settingsOf(pool) === undefined) return stored
    return { ...stored, replacements: [...stored.replacements, ...this.#unnoted(pool, stored)] }
  }

  /** Replacements that an earlier process made and could not record. */
  #unnoted(pool: NodePool, { replacements }: RolloutRecord): readonly Watched[] {
    if (this.drifted(pool).length === 0) return []
    const noted = new Set(replacements.map(({ claim }) => claim))
    return this.#claimsOf(pool).flatMap((claim): readonly Watched[] => {
      const { annotations, creationTimestamp = '', name } = claim.metadata
      const sinceMs = Date.parse(creationTimestamp)
      const isRecent = this.#clock.now() - sinceMs < recentMs
      const replaces = ownValue(annotations, replacesAnnotation)
      if (replaces === undefined || noted.has(name) || !isRecent || isConditionTrue(claim, 'Drifted'))
        return []
      return replaces.split(' ').some((each) => this.#isForDrift(each))
        ? [{ claim: name, sinceMs, owners: [] }]
        : []
    })
  }

  #isForDrift(replaced: string): boolean {
    const claim = this.#caches.nodeClaims.get({ name: replaced })
    return claim === undefined || isConditionTrue(claim, 'Drifted')
  }

  #keyOf(pool: NodePool): string {
    const nodeClass = nodeClassOf(this.#caches, pool)
    return `${pool.metadata.generation ?? 0}/${nodeClass?.metadata.generation ?? 0}`
  }
}

function emptyRecord(of: string): RolloutRecord {
  return { of, replacements: [], hasPassed: false }
}
