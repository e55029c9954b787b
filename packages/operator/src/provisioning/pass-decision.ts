/** From input to result: what one scheduling pass decides. */
import type { Pod } from '@tenon/api'
import type { SchedulingResult } from '@tenon/engine'
import type { BufferOutcome } from '../capacitybuffer/report.ts'
import { inSlices, type Slicing } from '@tenon/runtime'
import type { OnTrial } from '../node/evidence/judge.ts'
import type { PreferenceWarnings } from './reports/preference-warnings.ts'
import type { RefusedClaims } from './claims/refused-claims.ts'
import type { GatheredInput, SchedulingInputs } from './input/scheduling-input.ts'
import type { SchedulingReport } from './reports/scheduling-report.ts'
import type { TimedDecider } from './timed-decider.ts'

/** What this file works with. */
interface Dependencies {
  readonly inputs: SchedulingInputs
  readonly refused: RefusedClaims
  readonly preferences: PreferenceWarnings
  readonly decider: TimedDecider
  readonly report: SchedulingReport
  readonly slicing: Slicing
}

/** A decision, and what it is about. */
export interface Decided {
  readonly input: GatheredInput
  readonly result: SchedulingResult
}

export class PassDecision {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @returns nothing decided when there is nothing to decide, or no pool that could launch anything. */
  async make(onTrial: OnTrial, signal: AbortSignal): Promise<PassAnswer> {
    const { decider, inputs, preferences, refused, report, slicing } = this.#deps
    const { clock } = slicing
    const start = clock.monotonic()
    const all = refused.inTurn(await inputs.forPending(onTrial, signal))
    const [input, buffered] = withoutBuffers(all)
    report.ignored(input.ignored)
    const pods = [...input.pods, ...input.refused.map(({ pod }) => pod)]
    if (pods.length === 0) report.nothingToDo()
    if (pods.length + buffered.length === 0) return { buffers: { pods: buffered } }
    if (!input.hasEligiblePool) {
      await inSlices(report.withoutPools(pods), slicing)
      const waiting = inputs.unreadyPools().map(({ nodePool, because }) => `${nodePool}: ${because}`)
      if (pods.length > 0) report.noPools(waiting.toSorted())
      return { buffers: { pods: buffered } }
    }
    preferences.warn(input.pods)
    const result = await decider.decide(all, signal)
    signal.throwIfAborted()
    await inSlices(report.pendingZones(input, result), slicing)
    if (pods.length > 0) report.decided(input.pods, clock.monotonic() - start)
    const { stateNodes } = all
    return {
      decided: { input, result },
      buffers: { pods: buffered, decided: { result, stateNodes, refused: refusedOfBuffers(all) } },
    }
  }
}

/** What a pass has come to. */
export interface PassAnswer {
  /** Without pods of buffers. */
  readonly decided?: Decided
  readonly buffers: BufferOutcome
}

/** The input without pods of buffers, of which nobody is told as of pods; and those pods. */
function withoutBuffers(input: GatheredInput): readonly [input: GatheredInput, buffered: readonly Pod[]] {
  const { origins, pods, refused } = input
  const isOfBuffer = ({ metadata }: Pod) => origins?.get(metadata.uid ?? '') === 'buffer'
  const buffered = [...pods, ...refused.map(({ pod }) => pod)].filter(isOfBuffer)
  if (buffered.length === 0) return [input, []]
  return [
    {
      ...input,
      pods: pods.filter((pod) => !isOfBuffer(pod)),
      refused: refused.filter(({ pod }) => !isOfBuffer(pod)),
    },
    buffered,
  ]
}

function refusedOfBuffers({ origins, refused }: GatheredInput): readonly Pod[] {
  return refused.flatMap(({ pod }) => (origins?.get(pod.metadata.uid ?? '') === 'buffer' ? [pod] : []))
}
