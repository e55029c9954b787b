/** When the next iteration begins (cluster-autoscaler.md 2.2). */
import type { Pod } from '@tenon/api'
import type { Clock } from '@tenon/runtime'
import type { LoopOptions } from '../options/options.ts'

/** Pods that became unschedulable earlier do not trigger an iteration. */
const freshMs = 10_000

export class LoopTrigger {
  readonly #options: Pick<LoopOptions, 'scanIntervalMs' | 'frequentLoops'>
  readonly #clock: Clock
  /** Start of the last two iterations. */
  #starts: readonly [number | undefined, number | undefined] = [undefined, undefined]
  #isWanted = false
  #wake: (() => void) | undefined

  constructor(options: Pick<LoopOptions, 'scanIntervalMs' | 'frequentLoops'>, clock: Clock) {
    this.#options = options
    this.#clock = clock
  }

  /** Call it for every new or changed pod. */
  observe(pod: Pod): void {
    if (!this.#options.frequentLoops || !isNewlyUnschedulable(pod, this.#clock.now())) return
    this.#isWanted = true
    this.#wake?.()
  }

  /**
   * Resolves when the next iteration should begin.
   * @param lastChangeMs when nodes were last added or removals begun.
   */
  async next(lastChangeMs: number | undefined, signal: AbortSignal): Promise<void> {
    const [beforeLast, last] = this.#starts
    if (last !== undefined && !this.#isAtOnce(lastChangeMs, beforeLast)) await this.#wait(signal)
    signal.throwIfAborted()
    this.#isWanted = false
    this.#starts = [last, this.#clock.now()]
  }

  #isAtOnce(lastChangeMs: number | undefined, beforeLastMs: number | undefined): boolean {
    if (!this.#options.frequentLoops) return false
    const isProductive =
      lastChangeMs !== undefined && (beforeLastMs === undefined || lastChangeMs >= beforeLastMs)
    return this.#isWanted || isProductive
  }

  async #wait(signal: AbortSignal): Promise<void> {
    const waking = new AbortController()
    const wake = () => {
      waking.abort()
    }
    this.#wake = wake
    signal.addEventListener('abort', wake, { once: true })
    try {
      await this.#clock.sleep(this.#options.scanIntervalMs, waking.signal)
    } catch (error) {
      if (!waking.signal.aborted) throw error
    } finally {
      this.#wake = undefined
      signal.removeEventListener('abort', wake)
    }
  }
}

function isNewlyUnschedulable(pod: Pod, nowMs: number): boolean {
  if ((pod.spec.nodeName ?? '') !== '' || pod.metadata.deletionTimestamp !== undefined) return false
  if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') return false
  const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')
  if (condition?.status !== 'False' || condition.reason !== 'Unschedulable') return false
  return nowMs - Date.parse(condition.lastTransitionTime ?? '') <= freshMs
}
