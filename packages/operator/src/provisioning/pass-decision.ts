/** From input to result: what one scheduling pass decides. */
import { isRequestPod, type Pod } from '@tenon/api'
import { type SchedulingResult } from '@tenon/engine'
import { inSlices, type Slicing } from '@tenon/runtime'
import type { PreferenceWarnings } from './reports/preference-warnings.ts'
import type { RefusedClaims } from './claims/refused-claims.ts'
import type { GatheredInput, SchedulingInputs } from './input/scheduling-input.ts'
import type { SchedulingReport } from './reports/scheduling-report.ts'
import type { RoomOutcome } from './room-outcome.ts'
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
  async make(signal: AbortSignal): Promise<PassAnswer> {
    const { decider, inputs, preferences, refused, report, slicing } = this.#deps
    const { clock } = slicing
    const start = clock.monotonic()
    const all = refused.inTurn(await inputs.forPending(signal))
    const [input, roomPods] = withoutRoom(all)
    report.ignored(input.ignored)
    const pods = [...input.pods, ...input.refused.map(({ pod }) => pod)]
    if (pods.length === 0) report.nothingToDo()
    if (pods.length + roomPods.length === 0) return { room: { pods: roomPods } }
    if (!input.hasEligiblePool) {
      await inSlices(report.withoutPools(pods), slicing)
      const waiting = inputs.unreadyPools().map(({ nodePool, because }) => `${nodePool}: ${because}`)
      if (pods.length > 0) report.noPools(waiting.toSorted())
      // Room on nodes that are there is found without NodePools.
      const requested = onlyRequests(all)
      if (requested.pods.length === 0) return { room: { pods: roomPods } }
      const result = await decider.decide(requested, signal)
      signal.throwIfAborted()
      return { room: roomOf(requested, result, roomPods) }
    }
    preferences.warn(input.pods)
    const result = await decider.decide(all, signal)
    signal.throwIfAborted()
    await inSlices(report.pendingZones(input, result), slicing)
    if (pods.length > 0) report.decided(input.pods, clock.monotonic() - start)
    return { decided: { input, result }, room: roomOf(all, result, roomPods) }
  }
}

/** What a pass has come to. */
export interface PassAnswer {
  /** Without pods that only stand for room. */
  readonly decided?: Decided
  readonly room: RoomOutcome
}

function standsForRoom({ origins }: Pick<GatheredInput, 'origins'>, { metadata }: Pod): boolean {
  const origin = origins?.get(metadata.uid ?? '')
  return origin === 'buffer' || origin === 'request' || origin === 'check'
}

/** The input without pods that only stand for room, of which nobody is told as of pods; and those pods. */
function withoutRoom(input: GatheredInput): readonly [input: GatheredInput, roomPods: readonly Pod[]] {
  const { pods, refused } = input
  const isReal = (pod: Pod) => !standsForRoom(input, pod)
  const roomPods = [...pods, ...refused.map(({ pod }) => pod)].filter((pod) => !isReal(pod))
  if (roomPods.length === 0) return [input, []]
  return [
    { ...input, pods: pods.filter(isReal), refused: refused.filter(({ pod }) => isReal(pod)) },
    roomPods,
  ]
}

function onlyRequests(input: GatheredInput): GatheredInput {
  const pods = input.pods.filter(isRequestPod)
  const uids = new Set(pods.map(({ metadata }) => metadata.uid ?? ''))
  return {
    ...input,
    pods,
    podGroups: (input.podGroups ?? []).filter(({ members }) => members.every((uid) => uids.has(uid))),
  }
}

function roomOf(input: GatheredInput, result: SchedulingResult, pods: readonly Pod[]): RoomOutcome {
  const refused = input.refused.flatMap(({ pod }) => (standsForRoom(input, pod) ? [pod] : []))
  return { pods, decided: { result, stateNodes: input.stateNodes, refused } }
}
