import { isRecord, ownValue } from '@tenon/api'
import { jsonEqual } from '../shape-node.ts'

type Step = (values: readonly unknown[]) => readonly unknown[]

/** A compiled JSON path of the kubectl dialect (`.status.conditions[?(@.type=='Ready')].status`). */
export type JsonPath = (object: unknown) => readonly unknown[]

const fieldName = /^((?:\\.|[^.[\]\\])+)/
const filter =
  /^\[\?\(\s*@((?:\.[^\s=!<>)]+|\['[^']+'\])+)\s*(==|!=|>=|<=|>|<)\s*("(?:[^"\\]|\\.)*"|'[^']*'|[^)\s]+)\s*\)\]/
const existence = /^\[\?\(\s*@((?:\.[^\s=!<>)]+)+)\s*\)\]/
const index = /^\[(-?\d+)\]/
const slice = /^\[(-?\d*):(-?\d*)\]/
const quotedField = /^\[(?:'([^']*)'|"([^"]*)")\]/

/** Compiles a path; undefined if it is malformed. */
export function compileJsonPath(path: string): JsonPath | undefined {
  const steps: Step[] = []
  let rest = path
    .trim()
    .replace(/^\{(.*)\}$/, '$1')
    .replace(/^\$/, '')
  while (rest !== '') {
    const step = nextStep(rest)
    if (step === undefined) return undefined
    steps.push(step.step)
    rest = rest.slice(step.length)
  }
  return (object) => {
    let values: readonly unknown[] = [object]
    for (const step of steps) values = step(values)
    return values
  }
}

interface ParsedStep {
  readonly step: Step
  readonly length: number
}

function nextStep(rest: string): ParsedStep | undefined {
  if (rest.startsWith('.')) {
    const match = fieldName.exec(rest.slice(1))
    if (match === null)
      return rest === '.' || rest[1] === '[' ? { step: (values) => values, length: 1 } : undefined
    const text = match[0]
    return { step: text === '*' ? children : field(text.replace(/\\(.)/g, '$1')), length: text.length + 1 }
  }
  return bracketStep(rest)
}

function bracketStep(rest: string): ParsedStep | undefined {
  if (rest.startsWith('[*]')) return { step: children, length: 3 }
  const found = index.exec(rest)
  if (found !== null) return { step: atIndex(Number(found[1])), length: found[0].length }
  const range = slice.exec(rest)
  if (range !== null) return { step: between(range[1] ?? '', range[2] ?? ''), length: range[0].length }
  const quoted = quotedField.exec(rest)
  if (quoted !== null) return { step: field(quoted[1] ?? quoted[2] ?? ''), length: quoted[0].length }
  const comparison = filter.exec(rest)
  if (comparison !== null) return filterStep(comparison)
  const existing = existence.exec(rest)
  if (existing === null) return undefined
  const path = compileJsonPath(existing[1] ?? '')
  if (path === undefined) return undefined
  return {
    step: (values) => items(values).filter((item) => path(item).length > 0),
    length: existing[0].length,
  }
}

function filterStep(match: RegExpExecArray): ParsedStep | undefined {
  const path = compileJsonPath(match[1] ?? '')
  if (path === undefined) return undefined
  const expected = literal(match[3] ?? '')
  const operator = match[2] ?? '=='
  return {
    step: (values) =>
      items(values).filter((item) => path(item).some((value) => compares(value, operator, expected))),
    length: match[0].length,
  }
}

function literal(text: string): unknown {
  if (/^["'].*["']$/.test(text)) return text.slice(1, -1).replace(/\\(.)/g, '$1')
  if (text === 'true' || text === 'false') return text === 'true'
  return Number.isNaN(Number(text)) ? text : Number(text)
}

function compares(value: unknown, operator: string, expected: unknown): boolean {
  if (operator === '==') return jsonEqual(value, expected)
  if (operator === '!=') return !jsonEqual(value, expected)
  if (typeof value !== typeof expected || (typeof value !== 'number' && typeof value !== 'string'))
    return false
  const other = expected as typeof value
  if (operator === '>') return value > other
  if (operator === '<') return value < other
  return operator === '>=' ? value >= other : value <= other
}

function items(values: readonly unknown[]): readonly unknown[] {
  return values.flatMap((value) => (Array.isArray(value) ? (value as unknown[]) : []))
}

const children: Step = (values) =>
  values.flatMap((value) => (Array.isArray(value) ? value : isRecord(value) ? Object.values(value) : []))

function field(name: string): Step {
  return (values) =>
    values.flatMap((value) => {
      const found = isRecord(value) && Object.hasOwn(value, name) ? ownValue(value, name) : undefined
      return found === undefined ? [] : [found]
    })
}

function atIndex(position: number): Step {
  return (values) =>
    values.flatMap((value) => {
      const found: unknown = Array.isArray(value) ? value.at(position) : undefined
      return found === undefined ? [] : [found]
    })
}

function between(start: string, end: string): Step {
  const from = start === '' ? 0 : Number(start)
  const to = end === '' ? undefined : Number(end)
  return (values) => values.flatMap((value) => (Array.isArray(value) ? value.slice(from, to) : []))
}
