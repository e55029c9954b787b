/** Evaluates JSONPath templates as kubectl does; a missing key yields nothing. */
import { isRecord, ownValue } from '@tenon/api'
import {
  type Comparison,
  type Filter,
  JsonPathError,
  type Operand,
  type Path,
  type Step,
  type Template,
} from './template.ts'

export function renderTemplate(template: Template, object: unknown): string {
  return template
    .map((part) => {
      switch (part.kind) {
        case 'text':
          return part.text
        case 'path':
          return valuesAt(object, part.path).map(plainText).join(' ')
        case 'range':
          return valuesAt(object, part.path)
            .map((value) => renderTemplate(part.body, value))
            .join('')
      }
    })
    .join('')
}

/**
 * The values at a path, in order.
 * @throws JsonPathError if an index is out of range, or an array is required but not found.
 */
export function valuesAt(object: unknown, path: Path): readonly unknown[] {
  return path.reduce<readonly unknown[]>(
    (values, step) => values.flatMap((value) => after(value, step)),
    [object],
  )
}

/** Strings as they are, other values as JSON. */
export function plainText(value: unknown): string {
  return typeof value === 'string' ? value : (JSON.stringify(value) ?? '')
}

function after(value: unknown, step: Step): readonly unknown[] {
  switch (step.kind) {
    case 'field':
      return field(value, step.name)
    case 'wildcard':
      return children(value)
    case 'recursive':
      return containers(value)
    case 'index':
      return [element(arrayOf(value), step.index)]
    case 'slice':
      return slice(arrayOf(value), step)
    case 'union':
      return step.members.flatMap((member) => after(value, member))
    case 'filter':
      return arrayOf(value).filter((each) => holds(each, step.filter))
  }
}

function field(value: unknown, name: string): readonly unknown[] {
  if (!isRecord(value)) return []
  const found = ownValue(value, name)
  return found === undefined ? [] : [found]
}

function children(value: unknown): readonly unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : []
}

function containers(value: unknown): readonly unknown[] {
  const below = children(value)
  return below.length === 0 ? [] : [value, ...below.flatMap(containers)]
}

function arrayOf(value: unknown): readonly unknown[] {
  if (!Array.isArray(value)) throw new JsonPathError(`${shown(value)} is not an array`)
  return value
}

function element(array: readonly unknown[], index: number): unknown {
  const at = index < 0 ? array.length + index : index
  if (at < 0 || at >= array.length)
    throw new JsonPathError(`array index out of bounds: index ${index}, length ${array.length}`)
  return array[at]
}

function slice(
  array: readonly unknown[],
  { start, end, step }: Extract<Step, { kind: 'slice' }>,
): readonly unknown[] {
  return array.slice(start ?? 0, end ?? array.length).filter((_, at) => at % step === 0)
}

function holds(value: unknown, filter: Filter): boolean {
  switch (filter.kind) {
    case 'exists':
      return operandValues(value, filter.operand).length > 0
    case 'compare': {
      const left = single(operandValues(value, filter.left))
      const right = single(operandValues(value, filter.right))
      return left.length > 0 && right.length > 0 && compares(left[0], filter.comparison, right[0])
    }
  }
}

function operandValues(value: unknown, operand: Operand): readonly unknown[] {
  return operand.kind === 'value' ? [operand.value] : valuesAt(value, operand.path)
}

function single(values: readonly unknown[]): readonly unknown[] {
  if (values.length > 1) throw new JsonPathError('a filter compares one value with another, not several')
  return values
}

function compares(left: unknown, comparison: Comparison, right: unknown): boolean {
  if (comparison === '==') return left === right
  if (comparison === '!=') return left !== right
  if (!isOrdered(left) || typeof left !== typeof right) return false
  const other = right as typeof left
  switch (comparison) {
    case '<':
      return left < other
    case '<=':
      return left <= other
    case '>':
      return left > other
    case '>=':
      return left >= other
  }
}

function isOrdered(value: unknown): value is string | number {
  return typeof value === 'string' || typeof value === 'number'
}

function shown(value: unknown): string {
  const text = plainText(value)
  return text.length > 40 ? `${text.slice(0, 40)}…` : text
}
