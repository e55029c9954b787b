import type { ASTNode, Environment } from '@marcbachmann/cel-js'
import { celEquals, entriesOf } from './equality.ts'
import { sortedBy } from './lists.ts'
import {
  type CelType,
  type Checker,
  type Evaluator,
  type LocalScope,
  type MacroCall,
  nameOf,
  type Scope,
} from './macros.ts'

/** What a macro call is compiled to. */
interface Call {
  readonly range: ASTNode
  readonly names: readonly string[]
  readonly filter: ASTNode | undefined
  readonly body: ASTNode
  scopes: readonly LocalScope[]
}

/** How a macro combines the results of its bodies. */
interface Comprehension {
  readonly isPredicate: boolean
  readonly typeOf: (checker: Checker, body: CelType, key: CelType, value: CelType) => CelType
  readonly run: (bodies: Iterable<Body>) => unknown
}

interface Body {
  readonly key: unknown
  readonly value: unknown
  /** @throws what the body throws. */
  readonly evaluate: () => unknown
}

const toBool = (checker: Checker): CelType => checker.getType('bool')

/** As in CEL, an error is ignored if another element decides the result. */
function decides(bodies: Iterable<Body>, decisive: boolean): boolean {
  let failure: { readonly error: unknown } | undefined
  for (const body of bodies) {
    try {
      if (body.evaluate() === decisive) return decisive
    } catch (error) {
      failure ??= { error }
    }
  }
  if (failure !== undefined) throw failure.error
  return !decisive
}

const all: Comprehension = { isPredicate: true, typeOf: toBool, run: (bodies) => decides(bodies, false) }
const exists: Comprehension = { isPredicate: true, typeOf: toBool, run: (bodies) => decides(bodies, true) }

const existsOne: Comprehension = {
  isPredicate: true,
  typeOf: toBool,
  run: (bodies) => {
    let count = 0
    for (const body of bodies) if (body.evaluate() === true) count++
    return count === 1
  },
}

const transformList: Comprehension = {
  isPredicate: false,
  typeOf: (checker, body) => checker.registry.getListType(body),
  run: (bodies) => Array.from(bodies, (body) => body.evaluate()),
}

const transformMap: Comprehension = {
  isPredicate: false,
  typeOf: (checker, body, key) => checker.registry.getMapType(key, body),
  run: (bodies) => new Map(Array.from(bodies, (body) => [body.key, body.evaluate()])),
}

const transformMapEntry: Comprehension = {
  isPredicate: false,
  typeOf: (_checker, body) => body,
  run: (bodies) => {
    const map = new Map<unknown, unknown>()
    for (const body of bodies) {
      for (const [key, value] of entriesOf(body.evaluate() as object)) {
        if ([...map.keys()].some((known) => celEquals(known, key))) {
          throw new Error(`insert failed: key ${String(key)} already exists`)
        }
        map.set(key, value)
      }
    }
    return map
  },
}

const sortBy: Comprehension = {
  isPredicate: false,
  typeOf: (checker, _body, _key, value) => checker.registry.getListType(value),
  run: (bodies) => {
    const items = Array.from(bodies, (body) => ({ value: body.value, key: body.evaluate() }))
    return sortedBy(
      items.map(({ value }) => value),
      items.map(({ key }) => key),
    )
  },
}

/** With one name, it is a list item or a map key; with two, index or key and value. */
function macro(comprehension: Comprehension, names: number, hasFilter = false) {
  return ({ args, receiver }: MacroCall) => {
    const call: Call = {
      range: receiver,
      names: args.slice(0, names).map(nameOf),
      filter: hasFilter ? args[names] : undefined,
      body: args.at(-1) as ASTNode,
      scopes: [],
    }
    return {
      ...call,
      async: false,
      typeCheck: (checker: Checker, own: Call, scope: Scope) => check(comprehension, checker, own, scope),
      evaluate: (evaluator: Evaluator, own: Call, scope: Scope) =>
        comprehension.run(bodiesOf(evaluator, own, scope)),
    }
  }
}

function check(comprehension: Comprehension, checker: Checker, call: Call, scope: Scope): CelType {
  const range = checker.check(call.range, scope)
  const types = rangeTypes(checker, range, call)
  const scopes: LocalScope[] = []
  for (const [index, name] of call.names.entries()) {
    scopes.push((scopes.at(-1) ?? scope).forkWithVariable(name, types[index] as CelType))
  }
  call.scopes = scopes
  const inner = scopes.at(-1) ?? scope
  if (call.filter !== undefined) mustBeBool(checker, checker.check(call.filter, inner), call.filter)
  const body = checker.check(call.body, inner)
  if (comprehension.isPredicate) mustBeBool(checker, body, call.body)
  return comprehension.typeOf(checker, body, types[0] as CelType, types.at(-1) as CelType)
}

function mustBeBool(checker: Checker, type: CelType, node: ASTNode): void {
  if (type.kind === 'dyn' || type.name === 'bool') return
  const message = `expected type 'bool' but found '${checker.formatType(type)}'`
  throw checker.createError('predicate_type_mismatch', message, node)
}

/** The types of index or key, and of the value; with one name, of that variable. */
function rangeTypes(checker: Checker, range: CelType, call: Call): readonly CelType[] {
  const dyn = checker.getType('dyn')
  if (range.kind === 'dyn') return [dyn, dyn]
  const { keyType = dyn, valueType = dyn } = range
  if (range.kind === 'list')
    return call.names.length === 1 ? [valueType] : [checker.getType('int'), valueType]
  if (range.kind === 'map') return [keyType, valueType]
  const message = `expression of type '${checker.formatType(range)}' cannot be range of a comprehension`
  throw checker.createError('invalid_comprehension_range', message, call.range)
}

function* bodiesOf(evaluator: Evaluator, call: Call, scope: Scope): Generator<Body> {
  const range = evaluator.run(call.range, scope)
  let inner: Scope = scope
  const scopes = call.scopes.map((local) => {
    const own = local.reuse(inner)
    inner = own
    return own
  })
  for (const [key, value] of rangeEntries(range)) {
    const given = scopes.length === 1 ? [Array.isArray(range) ? value : key] : [key, value]
    for (const [index, local] of scopes.entries()) local.setIterValue(given[index], evaluator)
    if (call.filter !== undefined && evaluator.run(call.filter, inner) !== true) continue
    yield { key, value, evaluate: () => evaluator.run(call.body, inner) }
  }
}

function rangeEntries(range: unknown): Iterable<readonly [unknown, unknown]> {
  if (Array.isArray(range)) return range.map((value: unknown, index) => [BigInt(index), value] as const)
  if (typeof range === 'object' && range !== null) return entriesOf(range)
  throw new Error('no such overload')
}

/** Registers comprehensions with two variables, and those with one that the library lacks. */
export function registerComprehensions(environment: Environment): void {
  const define = (name: string, args: number, handler: ReturnType<typeof macro>): void => {
    const types = Array.from({ length: args }, () => 'ast').join(', ')
    environment.registerFunction(`list.${name}(${types}): dyn`, handler as () => unknown)
  }
  define('all', 3, macro(all, 2))
  define('exists', 3, macro(exists, 2))
  define('existsOne', 3, macro(existsOne, 2))
  define('exists_one', 3, macro(existsOne, 2))
  for (const [name, comprehension] of [
    ['transformList', transformList],
    ['transformMap', transformMap],
    ['transformMapEntry', transformMapEntry],
  ] as const) {
    define(name, 3, macro(comprehension, 2))
    define(name, 4, macro(comprehension, 2, true))
  }
  define('sortBy', 2, macro(sortBy, 1))
}
