/** The progress of a rollout, from its NodePool and NodeClaims (ask.md 9). */
import {
  annotations,
  conditionOf,
  counted,
  isConditionTrue,
  type NodeClaim,
  type NodePool,
  nodePoolHash,
  nodePoolHashVersion,
  ownValue,
} from '@tenon/api'
import { allowedDisruptions } from '@tenon/engine'
import {
  poolWishes,
  readPause,
  readRecord,
  rolloutAnnotations,
  rolloutSettings,
} from '@tenon/operator/objects'

interface Counts {
  readonly updated: number
  readonly total: number
  readonly unhealthy: number
}

export type Progress =
  | ({ readonly kind: 'done' } & Counts)
  | ({ readonly kind: 'halted'; readonly because: string } & Counts)
  /** `waitingFor` is a clause; absent while nodes are being replaced. */
  | ({ readonly kind: 'going'; readonly waitingFor?: string } & Counts)

interface Facts {
  readonly pool: NodePool
  readonly claims: readonly NodeClaim[]
}

export function progressOf({ pool, claims }: Facts, nowMs: number): Progress {
  const live = claims.filter(({ metadata }) => metadata.deletionTimestamp === undefined)
  const outdated = live.filter((claim) => isOutdated(pool, claim))
  const record = readRecord(ownValue(pool.metadata.annotations, rolloutAnnotations.state) ?? '')
  const unhealthy = (record?.replacements ?? []).filter((each) => each.unhealthy !== undefined).length
  const counts = { updated: live.length - outdated.length, total: live.length, unhealthy }
  const halted = conditionOf(pool, 'RolloutHalted')
  if (halted?.status === 'True') return { kind: 'halted', because: halted.message, ...counts }
  if (outdated.length === 0) return { kind: 'done', ...counts }
  const waitingFor = waitOf({ pool, claims: live }, record, nowMs)
  return { kind: 'going', ...(waitingFor !== undefined && { waitingFor }), ...counts }
}

export function progressText(name: string, progress: Progress): string {
  const { total, unhealthy, updated } = progress
  const counts = `${updated} of ${counted(total, 'node')} updated${unhealthy > 0 ? `, ${unhealthy} unhealthy` : ''}`
  switch (progress.kind) {
    case 'done':
      return `nodepool "${name}" successfully rolled out (${counted(total, 'node')})`
    case 'halted':
      return `rollout of nodepool "${name}" is halted: ${counts}: ${progress.because}`
    case 'going':
      return `Waiting for rollout of nodepool "${name}": ${counts}${progress.waitingFor === undefined ? '' : `, ${progress.waitingFor}`}`
  }
}

/** Whether a claim has drifted or will soon be marked as drifted. */
function isOutdated(pool: NodePool, claim: NodeClaim): boolean {
  if (isConditionTrue(claim, 'Drifted')) return true
  const stored = claim.metadata.annotations
  const hash = ownValue(stored, annotations.nodePoolHash)
  const isComparable = ownValue(stored, annotations.nodePoolHashVersion) === nodePoolHashVersion
  return isComparable && hash !== undefined && hash !== nodePoolHash(pool)
}

function waitOf(
  { pool, claims }: Facts,
  record: ReturnType<typeof readRecord>,
  nowMs: number,
): string | undefined {
  const pause = conditionOf(pool, 'Paused')
  if (pause?.status === 'True') return `paused: ${pause.message}`
  const own = readPause(ownValue(pool.metadata.annotations, rolloutAnnotations.paused) ?? 'false')
  if (own.kind !== 'none' && nowMs < (own.value.untilMs ?? Infinity)) return 'the rollout is paused'
  const open = (record?.replacements ?? []).filter(
    (each) => each.unhealthy === undefined && each.isHealthy !== true,
  )
  const isCareful = rolloutSettings(pool).kind === 'careful'
  if (isCareful && record?.hasPassed === false && open.length > 0)
    return `watching the first replacements (${open.map(({ claim }) => claim).join(', ')})`
  const budgets = pool.spec.disruption?.budgets ?? [{ nodes: '10%' }]
  return allowedDisruptions(budgets, 'Drifted', claims.length, nowMs, poolWishes(pool).timeZone) === 0
    ? 'waiting for a budget that allows it'
    : undefined
}
