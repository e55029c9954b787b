/** When CapacityBuffers count: annotation `tenon.sh/schedule` (wanted.md 5). */
import {
  type CapacityBuffer,
  conditionOf,
  isConditionTrue,
  labels,
  type NodeClaim,
  type NodePool,
  ownValue,
  type PodSpec,
  readWindows,
  type TimeWindow,
  untoleratedTaint,
  windowsState,
} from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { poolOf } from '../../state/nodepools/managed-pool.ts'

export const scheduleAnnotation = 'tenon.sh/schedule'

/** How long nodes are expected to take before any was seen to start. */
const unseenMs = 5 * 60_000
/** Nodes that take longer have met trouble. */
const longestMs = 30 * 60_000
/** For the passes that launch the nodes. */
const marginMs = 15_000
/** Starts remembered of each NodePool. */
const mostStarts = 100

export interface ScheduleState {
  /** Whether the buffer counts: inside a window, or as long before one as nodes take to start. */
  readonly isOn: boolean
  /** When that may change, in Unix milliseconds; undefined if it never does. */
  readonly changeMs: number | undefined
}

interface Sources {
  readonly caches: Pick<Caches, 'nodeClaims' | 'nodePools'>
  readonly state: Pick<ClusterState, 'isManaged'>
  readonly clock: Pick<Clock, 'now'>
}

export class BufferSchedules {
  readonly #sources: Sources
  /** Milliseconds from the creation of NodeClaims to their initialization, latest last, by NodePool. */
  #starts: Map<string, number[]> | undefined

  constructor(sources: Sources) {
    this.#sources = sources
  }

  /** Undefined without a schedule that can be read: the buffer always counts. */
  of(buffer: CapacityBuffer, spec: PodSpec): ScheduleState | undefined {
    const text: unknown = ownValue(buffer.metadata.annotations, scheduleAnnotation)
    const reading = typeof text === 'string' ? readWindows(text) : undefined
    if (reading === undefined || 'problem' in reading) return undefined
    const nowMs = this.#sources.clock.now()
    const { changeMs, isOpen } = windowsState(reading.windows, nowMs)
    if (isOpen || changeMs === undefined) return { isOn: isOpen, changeMs }
    const leadMs = this.#startMs(spec) + marginMs
    const isOn = changeMs - nowMs <= leadMs || wasOn(buffer, reading.windows, changeMs, nowMs)
    return { isOn, changeMs: isOn ? changeMs : changeMs - leadMs }
  }

  /** The slowest p90 of the NodePools that the pods suit. */
  #startMs(spec: PodSpec): number {
    const { caches, state } = this.#sources
    const starts = (this.#starts ??= this.#follow())
    const seen = caches.nodePools
      .list()
      .filter((pool) => state.isManaged(pool) && mayServe(pool, spec))
      .flatMap(({ metadata }) => {
        const all = (starts.get(metadata.name) ?? []).toSorted((a, b) => a - b)
        return all[Math.ceil(0.9 * all.length) - 1] ?? []
      })
    return seen.length === 0 ? unseenMs : Math.min(longestMs, Math.max(...seen))
  }

  /** Begins with the first schedule. */
  #follow(): Map<string, number[]> {
    const { nodeClaims } = this.#sources.caches
    const starts = new Map<string, number[]>()
    const see = (claim: NodeClaim) => {
      const ms = startOf(claim)
      if (ms === undefined) return
      const all = starts.get(poolOf(claim)) ?? []
      starts.set(poolOf(claim), [...all, ms].slice(-mostStarts))
    }
    for (const claim of nodeClaims.list()) see(claim)
    nodeClaims.onChange((change) => {
      if (change.kind === 'updated' && startOf(change.old) === undefined) see(change.object)
    })
    return starts
  }
}

/**
 * Whether the buffer counts already for the window that begins next: nodes that start faster than expected are not let go
 * to be launched once more. Read from the status, so a restart changes nothing.
 */
function wasOn(
  { status }: CapacityBuffer,
  windows: readonly TimeWindow[],
  changeMs: number,
  nowMs: number,
): boolean {
  if ((status?.replicas ?? 0) === 0 || changeMs - nowMs > longestMs + marginMs) return false
  // Otherwise the status may still be that of the window before.
  const before = windowsState(windows, nowMs - longestMs)
  return !before.isOpen && before.changeMs === changeMs
}

/** How long the node took; undefined if it is not initialized. */
function startOf(claim: NodeClaim): number | undefined {
  if (!isConditionTrue(claim, 'Initialized')) return undefined
  const { lastTransitionTime = '' } = conditionOf(claim, 'Initialized') ?? {}
  const ms = Date.parse(lastTransitionTime) - Date.parse(claim.metadata.creationTimestamp ?? '')
  return ms >= 0 ? ms : undefined
}

/** Whether taints and node selector let the pods onto nodes of the NodePool, as far as its template says. */
function mayServe({ metadata, spec: { template } }: NodePool, spec: PodSpec): boolean {
  const known = { ...template.metadata?.labels, [labels.nodePool]: metadata.name }
  const selected = Object.entries(spec.nodeSelector ?? {})
  return (
    untoleratedTaint(template.spec.taints ?? [], spec.tolerations) === undefined &&
    selected.every(([key, value]) => (ownValue(known, key) ?? value) === value)
  )
}
