/** Finds a smaller story that fails in the same way. */
import { type FaultKind, faultKinds, type Story, type WorkloadKind, workloadKinds } from './story.ts'
import type { Violation } from './invariants/scene.ts'

/** A story and its violation. */
export interface Failure {
  readonly story: Story
  readonly violation: Violation
}

/** With fewer nodes there is hardly any workload. */
const fewestNodes = 4

/** Plays a story; undefined if it does not fail. */
export type Attempt = (story: Story) => Promise<Violation | undefined>

/**
 * Ends the story right after its failure, then omits kinds of faults and workload, halves first, as long as the
 * same invariant fails.
 * @param attempts maximum number of stories to play.
 */
export async function shrink(failure: Failure, attempt: Attempt, attempts: number): Promise<Failure> {
  let best = failure
  let left = attempts
  const tries = async (story: Story): Promise<boolean> => {
    if (left-- <= 0) return false
    const violation = await attempt(story)
    if (violation?.invariant !== failure.violation.invariant) return false
    best = { story, violation }
    return true
  }
  const hoursNow = (): number => Math.ceil(best.violation.atMs / 36_000) / 100
  if (hoursNow() < best.story.hours) await tries({ ...best.story, hours: hoursNow() })
  for (let factor = 0.5; factor < 0.95; factor = (1 + factor) / 2) {
    while (await tries({ ...best.story, hours: best.story.hours * factor }));
  }
  while (
    best.story.nodes > fewestNodes &&
    (await tries({ ...best.story, nodes: Math.max(fewestNodes, Math.ceil(best.story.nodes / 2)) }))
  );
  await leaveOut(
    faultKinds.filter((kind) => !best.story.withoutFaults.includes(kind)),
    async (kinds: readonly FaultKind[]) =>
      await tries({ ...best.story, withoutFaults: [...best.story.withoutFaults, ...kinds] }),
  )
  await leaveOut(
    workloadKinds.filter((kind) => !best.story.withoutWorkloads.includes(kind)),
    async (kinds: readonly WorkloadKind[]) =>
      await tries({ ...best.story, withoutWorkloads: [...best.story.withoutWorkloads, ...kinds] }),
  )
  return best
}

/** Omits all of the kinds, or else each half of them, down to single ones. */
async function leaveOut<T>(
  kinds: readonly T[],
  tries: (kinds: readonly T[]) => Promise<boolean>,
): Promise<void> {
  if (kinds.length === 0 || (await tries(kinds)) || kinds.length === 1) return
  const middle = kinds.length >> 1
  await leaveOut(kinds.slice(0, middle), tries)
  await leaveOut(kinds.slice(middle), tries)
}
