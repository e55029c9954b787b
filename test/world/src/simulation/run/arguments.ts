/** Flags of the world's commands. */
import { parseArgs } from 'node:util'
import { plantedBug, plantedBugs } from '../planted/bugs.ts'
import { type FaultKind, faultKinds } from '../story.ts'
import type { PlantedBug } from '../planted/planted-bug.ts'

/** An invalid flag; the message names it, and the valid values. */
export class UsageError extends Error {}

/**
 * The values of known flags.
 * @throws UsageError for an unknown flag.
 */
export function readFlags(
  args: readonly string[],
  known: readonly string[],
): Readonly<Record<string, string | undefined>> {
  try {
    const options = Object.fromEntries(known.map((name) => [name, { type: 'string' as const }]))
    return parseArgs({ args: [...args], options }).values
  } catch (cause) {
    throw new UsageError(
      `${(cause as Error).message}; known are ${known.map((name) => `--${name}`).join(', ')}`,
      {
        cause,
      },
    )
  }
}

/** @throws UsageError unless the text is a number of at least `least`. */
export function numberFlag(name: string, text: string | undefined, usual: number, least = 0): number {
  if (text === undefined) return usual
  const value = Number(text)
  if (text !== '' && Number.isFinite(value) && value >= least) return value
  throw new UsageError(`--${name} must be a number of at least ${least}, not ${text}`)
}

/**
 * Seeds of `7`, `1..30` or `3,8,12`.
 * @throws UsageError
 */
export function seedsFlag(text: string): readonly number[] {
  return text.split(',').flatMap((part) => {
    const range = /^(\d+)(?:\.\.(\d+))?$/.exec(part)
    const first = Number(range?.[1])
    const last = Number(range?.[2] ?? range?.[1])
    if (range === null || last < first)
      throw new UsageError(`--seeds must look like 1..30 or 3,8,12, not ${text}`)
    return Array.from({ length: last - first + 1 }, (_, i) => first + i)
  })
}

/**
 * The items of `a,b`.
 * @throws UsageError for an unknown one.
 */
export function listFlag<T extends string>(
  flag: string,
  text: string | undefined,
  known: readonly T[],
): readonly T[] {
  return (text ?? '')
    .split(',')
    .filter((part) => part !== '')
    .map((part) => {
      const found = known.find((each) => each === part)
      if (found === undefined) throw new UsageError(`--${flag}: ${part} is not one of ${known.join(', ')}`)
      return found
    })
}

/**
 * The kinds of faults to omit; undefined without such flags.
 * @throws UsageError
 */
export function faultsLeftOut(
  given: Readonly<Record<string, string | undefined>>,
): readonly FaultKind[] | undefined {
  const [without, only] = [given['without-faults'], given['only-faults']]
  if (without === undefined && only === undefined) return undefined
  const left = listFlag('without-faults', without, faultKinds)
  if (only === undefined) return left
  const kept = listFlag('only-faults', only, faultKinds)
  return faultKinds.filter((kind) => left.includes(kind) || !kept.includes(kind))
}

/**
 * The planted bugs of `a,b`.
 * @throws UsageError for an unknown one.
 */
export function bugsFlag(text: string): readonly PlantedBug[] {
  const names = plantedBugs.map(({ name }) => name)
  return listFlag('bug', text, names).map(plantedBug)
}
