/** Rollouts that make a few replacements first and watch them: what may go on, and what is known (ask.md 9). */
import {
  controllerOf,
  isConditionTrue,
  labels,
  type NodeClaim,
  type NodePool,
  ownValue,
  type Pod,
} from '@tenon/api'
import { type Clock, Listeners } from '@tenon/runtime'
import { readPause } from '../pause-value.ts'
import { type Caches, indexes } from '../caches.ts'
import { nodeClassOf } from './managed-pool.ts'
import { readRecord, type RolloutRecord, type Watched } from './rollout-record.ts'
import { canaryCount, rolloutAnnotations, type RolloutSettings, rolloutSettings } from './rollout-settings.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodeClasses' | 'nodePools'>
  readonly clock: Pick<Clock, 'now'>
}

/** Nodes in place of others, as their claims tell; of claims of earlier processes. */
const replacesAnnotation = 'tenon.sh/replaces'
/** A replacement that is older was made for something else. */
const recentMs = 30 * 60_000

/** Why no further drifted node of a NodePool is replaced now. */
export type RolloutHold =
  | { readonly kind: 'invalid'; readonly because: string }
  | { readonly kind: 'paused'; readonly because: string }
  | { readonly kind: 'halted'; readonly because: string }
  /** The canaries are watched, or on their way. */
  | { readonly kind: 'watching'; readonly because: string }

interface Known {
  readonly uid: string
  record: RolloutRecord
}

export class CanaryRollouts {
  readonly #deps: Dependencies
  /** By name of the NodePool. */
  readonly #known = new Map<string, Known>()
  /** Names of NodePools whose rollout has to be looked at. */
  readonly changes: Listeners<string> = new Listeners()

  constructor(deps: Dependencies) {
    this.#deps = deps
    deps.caches.nodePools.onChange(({ kind, object }) => {
      if (kind === 'deleted') this.#known.delete(object.metadata.name)
    })
  }

  /** The settings of a NodePool whose replacements are watched. */
  settingsOf(pool: NodePool): RolloutSettings | undefined {
    const reading = rolloutSettings(pool)
    return reading.kind === 'careful' ? reading.settings : undefined
  }

  /** What is known of the rollout since the last edit. */
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

  /** Begins anew: somebody has looked at what halted it. */
  reset(pool: NodePool): void {
    this.keep(pool, emptyRecord(this.#keyOf(pool)))
    this.changes.notify(pool.metadata.name)
  }

  /** Nodes of the pool are replaced by these claims because they have drifted. @param pods of the nodes that go. */
  begun(poolName: string, claims: readonly NodeClaim[], pods: readonly Pod[]): void {
    const pool = this.#deps.caches.nodePools.get({ name: poolName })
    if (pool === undefined || this.settingsOf(pool) === undefined) return
    const owners = [...new Set(pods.filter(isPodReady).flatMap((pod) => controllerOf(pod)?.uid ?? []))]
    const sinceMs = this.#deps.clock.now()
    const record = this.recordOf(pool)
    const added = claims
      .filter(({ metadata }) => !record.replacements.some(({ claim }) => claim === metadata.name))
      .map(({ metadata }): Watched => ({ claim: metadata.name, sinceMs, owners }))
    this.keep(pool, { ...record, replacements: [...record.replacements, ...added] })
    this.changes.notify(poolName)
  }

  /** Why no drifted node of the NodePool is to be replaced, whatever has begun already. */
  stopOf(pool: NodePool): RolloutHold | undefined {
    const pause = readPause(ownValue(pool.metadata.annotations, rolloutAnnotations.paused) ?? 'false')
    if (pause.kind !== 'none' && this.#deps.clock.now() < (pause.value.untilMs ?? Infinity)) {
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
   * How many more drifted nodes of the NodePool may be replaced now, whatever its budgets say.
   * @param poolNodes how many nodes it has.
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

  /** Drifted claims of the NodePool that are not on their way out. */
  drifted(pool: NodePool): readonly NodeClaim[] {
    return this.#claimsOf(pool).filter((claim) => isConditionTrue(claim, 'Drifted'))
  }

  #claimsOf({ metadata: { name } }: NodePool): readonly NodeClaim[] {
    return this.#deps.caches.nodeClaims
      .byIndex(indexes.byNodePool, name)
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  }

  #restored(pool: NodePool, of: string): RolloutRecord {
    const text = ownValue(pool.metadata.annotations, rolloutAnnotations.state)
    const stored = (text === undefined ? undefined : readRecord(text)) ?? emptyRecord(of)
    if (stored.of !== of || stored.hasPassed || this.settingsOf(pool) === undefined) return stored
    return { ...stored, replacements: [...stored.replacements, ...this.#unnoted(pool, stored)] }
  }

  /** Replacements that an earlier process made and had no time to note. */
  #unnoted(pool: NodePool, { replacements }: RolloutRecord): readonly Watched[] {
    if (this.drifted(pool).length === 0) return []
    const noted = new Set(replacements.map(({ claim }) => claim))
    return this.#claimsOf(pool).flatMap((claim): readonly Watched[] => {
      const { annotations, creationTimestamp = '', name } = claim.metadata
      const sinceMs = Date.parse(creationTimestamp)
      const isRecent = this.#deps.clock.now() - sinceMs < recentMs
      const replaces = ownValue(annotations, replacesAnnotation)
      if (replaces === undefined || noted.has(name) || !isRecent || isConditionTrue(claim, 'Drifted'))
        return []
      return replaces.split(' ').some((each) => this.#isForDrift(each))
        ? [{ claim: name, sinceMs, owners: [] }]
        : []
    })
  }

  #isForDrift(replaced: string): boolean {
    const claim = this.#deps.caches.nodeClaims.get({ name: replaced })
    return claim === undefined || isConditionTrue(claim, 'Drifted')
  }

  #keyOf(pool: NodePool): string {
    const nodeClass = nodeClassOf(this.#deps.caches, pool)
    return `${pool.metadata.generation ?? 0}/${nodeClass?.metadata.generation ?? 0}`
  }
}

function emptyRecord(of: string): RolloutRecord {
  return { of, replacements: [], hasPassed: false }
}

/** Whether the pod serves. */
export function isPodReady({ status }: Pod): boolean {
  return (status?.conditions ?? []).some(({ type, status: is }) => type === 'Ready' && is === 'True')
}

export const poolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''
