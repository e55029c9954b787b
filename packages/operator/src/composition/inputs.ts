/** Builds what collects the input of scheduling decisions. */
import { SchedulingInputs } from '../provisioning/input/scheduling-input.ts'
import type { PoolKind } from '../state/nodepools/observed-pools.ts'
import type { Assembly } from './parts.ts'

/** @param kind which NodePools decisions may choose from; by default those that questions are about. */
export function inputsOf(
  parts: Assembly,
  kind: PoolKind = parts.observed.isAll ? 'any' : 'acting',
): SchedulingInputs {
  return new SchedulingInputs({ ...parts, choice: parts.observed.choice(kind) })
}
