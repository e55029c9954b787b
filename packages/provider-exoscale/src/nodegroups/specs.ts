/** `--nodes=<min>:<max>:<name>` (cluster-autoscaler.md 1.3). */

/** A valid value of `--nodes`. */
interface GroupSpec {
  readonly min: number
  readonly max: number
  readonly name: string
}

export type ParsedSpec =
  | ({ readonly kind: 'spec' } & GroupSpec)
  /** `name` is set if the value shows which group it is for. */
  | { readonly kind: 'malformed'; readonly problem: string; readonly name?: string }

/** How a group is named in `--nodes`: by name, or by one of its ids. */
export type SpecLookup =
  | { readonly kind: 'found'; readonly spec: GroupSpec }
  | { readonly kind: 'none' }
  | { readonly kind: 'malformed'; readonly problem: string }

const example = 'write it as MIN:MAX:NAME, for example --nodes=1:5:workers'

/** @param least the smallest valid minimum. */
export function parseSpec(text: string, least: 0 | 1 = 1): ParsedSpec {
  const [minText, maxText, ...rest] = text.split(':')
  if (minText === undefined || maxText === undefined || rest.length === 0)
    return { kind: 'malformed', problem: `--nodes=${text} has a wrong form: ${example}` }
  const name = rest.join(':')
  const malformed = (problem: string): ParsedSpec => ({
    kind: 'malformed',
    problem: `--nodes=${text}: ${problem}`,
    ...(name === '' ? {} : { name }),
  })
  const [min, max] = [integerOf(minText), integerOf(maxText)]
  if (min === undefined) return malformed(`the minimum "${minText}" is no integer; ${example}`)
  if (max === undefined) return malformed(`the maximum "${maxText}" is no integer; ${example}`)
  if (min < least) return malformed(`the minimum size is ${min}; it must be at least ${least}`)
  if (max < min) return malformed(`the maximum size ${max} is below the minimum size ${min}`)
  if (name === '') return malformed(`the name is blank; ${example}`)
  return { kind: 'spec', min, max, name }
}

/**
 * The first spec of a group. A malformed one before it takes precedence if it is for this group, or its group is
 * unknown. Specs of other groups do not matter.
 */
export function specOf(specs: readonly ParsedSpec[], names: readonly string[]): SpecLookup {
  for (const spec of specs) {
    if (spec.name !== undefined && !names.includes(spec.name)) continue
    if (spec.kind === 'malformed') return { kind: 'malformed', problem: spec.problem }
    return { kind: 'found', spec }
  }
  return { kind: 'none' }
}

function integerOf(text: string): number | undefined {
  return /^[+-]?\d{1,15}$/.test(text) ? Number(text) : undefined
}
