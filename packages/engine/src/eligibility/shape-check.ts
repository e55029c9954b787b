/** Checks that external data matches its type. Never throws. */
import { isQuantity, isRecord, ownValue } from '@tenon/api'

/** A value that does not match its type. */
export interface ShapeProblem {
  /** Path from the root, such as `spec.containers[0].name`. */
  readonly field: string
  /** What is expected there, such as `a list`. */
  readonly expected: string
}

/** Checks one value and reports every problem in it. */
export type Shape = (value: unknown, at: Inspection) => void

type Step = 'field' | 'index' | 'key'

/**
 * The current path and the problems found. The path is only rendered for a problem, as every pending pod is
 * checked and nearly all are valid.
 */
export class Inspection {
  readonly problems: ShapeProblem[] = []
  readonly #steps: Step[] = []
  readonly #names: (string | number)[] = []

  enter(step: Step, name: string | number): void {
    this.#steps.push(step)
    this.#names.push(name)
  }

  leave(): void {
    this.#steps.pop()
    this.#names.pop()
  }

  /** Records a problem at the current path. */
  expect(expected: string): void {
    this.problems.push({ field: this.#field(), expected })
  }

  #field(): string {
    let field = ''
    for (const [i, name] of this.#names.entries()) {
      if (this.#steps[i] === 'index') field += `[${name}]`
      else if (this.#steps[i] === 'key') field += `["${name}"]`
      else field += field === '' ? name : `.${name}`
    }
    return field
  }
}

/** All problems of `value`. */
export function misfits(value: unknown, shape: Shape): readonly ShapeProblem[] {
  const inspection = new Inspection()
  shape(value, inspection)
  return inspection.problems
}

/** A value that `isRight` accepts. */
export function plain(expected: string, isRight: (value: unknown) => boolean): Shape {
  return (value, at) => {
    if (!isRight(value)) at.expect(expected)
  }
}

export const text: Shape = plain('a text', (value) => typeof value === 'string')
export const nonEmptyText: Shape = plain(
  'a text that is not empty',
  (value) => typeof value === 'string' && value !== '',
)
export const integer: Shape = plain('an integer', Number.isSafeInteger)
export const positiveInteger: Shape = plain(
  'an integer above 0',
  (value) => Number.isSafeInteger(value) && (value as number) > 0,
)
/** Clients may write quantities as plain numbers. */
export const quantity: Shape = plain('a quantity of 0 or more (for example 500m, 4Gi or 2)', (value) => {
  const written = typeof value === 'number' ? String(value) : value
  return typeof written === 'string' && isQuantity(written) && !written.startsWith('-')
})

export function oneOf(...values: readonly string[]): Shape {
  return plain(`one of ${values.join(', ')}`, (value) => values.includes(value as string))
}

/** A field that may be omitted; `null` counts as omitted. */
export function optional(shape: Shape): Shape {
  return (value, at) => {
    if (value !== undefined && value !== null) shape(value, at)
  }
}

export function listOf(entry: Shape): Shape {
  return (value, at) => {
    if (!Array.isArray(value)) {
      at.expect('a list')
      return
    }
    for (let i = 0; i < value.length; i++) within(at, 'index', i, value[i], entry)
  }
}

export function mapOf(entry: Shape): Shape {
  return (value, at) => {
    if (!isRecord(value)) {
      at.expect('a map')
      return
    }
    for (const key in value) within(at, 'key', key, ownValue(value, key), entry)
  }
}

/** An object with these fields; fields that are not named may hold anything. */
export function fields(shapes: Readonly<Record<string, Shape>>): Shape {
  const names = Object.keys(shapes)
  const checks = Object.values(shapes)
  return (value, at) => {
    if (!isRecord(value)) {
      at.expect('an object')
      return
    }
    for (let i = 0; i < names.length; i++) {
      const name = names[i] as string
      within(at, 'field', name, ownValue(value, name), checks[i] as Shape)
    }
  }
}

/** Checks a value inside the current one. */
export function within(
  at: Inspection,
  step: Step,
  name: string | number,
  value: unknown,
  shape: Shape,
): void {
  at.enter(step, name)
  shape(value, at)
  at.leave()
}
