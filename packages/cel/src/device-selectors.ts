/** Device selectors: CEL over one device (devices.md 3.10). */
import type { Device, DeviceAttribute } from '@tenon/api'
import type { Environment } from '@marcbachmann/cel-js'
import { type CelExpression, compileCelBool } from './bool-expression.ts'
import { createEnvironment } from './environment.ts'
import { celEquals } from './equality.ts'
import { celQuantity, quantityType } from './quantities.ts'
import { celVersion } from './versions.ts'

/** Limit of the API, in characters. */
const longestExpression = 10 * 1024

/** A selector, or why it does not compile. */
export type CompiledDeviceSelector =
  | { readonly expression: CelExpression; readonly text: string; readonly problem?: undefined }
  | { readonly problem: string; readonly text: string; readonly expression?: undefined }

const variable = 'device'
/** Exceeds the number of values that an attribute can have. */
const mostIncluded = 48

/** Declared as in the API server, which rejects expressions that use the variable in other ways. */
const declaration = {
  driver: 'string',
  allowMultipleAllocations: 'bool',
  attributes: 'map<string, map<string, dyn>>',
  capacity: `map<string, map<string, ${quantityType}>>`,
}

function createDeviceEnvironment(variables: Readonly<Record<string, 'dyn'>>): Environment {
  return createEnvironment(variables).registerFunction('dyn.includes(dyn): bool', includes)
}

/** Whether an attribute has a value, as a single value or in a list. */
function includes(attribute: unknown, value: unknown): boolean {
  if (!Array.isArray(attribute)) return celEquals(attribute, value)
  if (attribute.length > mostIncluded)
    throw new Error(`'includes' function cannot be applied to lists longer than ${mostIncluded} values`)
  return attribute.some((each) => celEquals(each, value))
}

let evaluating: Environment | undefined
let checking: Environment | undefined

/** Why the API server rejects a selector, or undefined. It checks types too. */
export function deviceSelectorProblem(text: string): string | undefined {
  checking ??= createDeviceEnvironment({}).registerVariable({ name: variable, schema: declaration })
  const expression = compileCelBool(checking, variable, text, { hasBindings: true })
  return typeof expression === 'string' ? expression : undefined
}

const compiled = new Map<string, CompiledDeviceSelector>()
const mostCompiled = 1000

/** Memoized: compilation is pure and expensive, and all decisions use the same selectors. */
export function compileDeviceSelector(text: string): CompiledDeviceSelector {
  const known = compiled.get(text)
  if (known !== undefined) return known
  const fresh = compileUncached(text)
  if (compiled.size >= mostCompiled) compiled.clear()
  compiled.set(text, fresh)
  return fresh
}

function compileUncached(text: string): CompiledDeviceSelector {
  if (text.length > longestExpression)
    return { problem: `the expression is longer than ${longestExpression}`, text }
  evaluating ??= createDeviceEnvironment({ [variable]: 'dyn' })
  const expression = compileCelBool(evaluating, variable, text, { hasBindings: true })
  return typeof expression === 'string' ? { problem: expression, text } : { expression, text }
}

/** The result of a selector; `problem` says why the evaluation failed. */
export type DeviceSelectorAnswer = boolean | { readonly problem: string }

/** Evaluates a selector on a published device. */
export function askDeviceSelector(
  selector: CompiledDeviceSelector,
  device: Device,
  driver: string,
): DeviceSelectorAnswer {
  if (selector.expression === undefined) return { problem: selector.problem }
  // A domain without attributes of the device is an empty map, unless the expression tests its presence.
  const asksForDomains = /\bin\s+device\s*\.\s*(attributes|capacity)\b/.test(selector.text)
  const named = asksForDomains ? [] : [...selector.text.matchAll(/"([^"]*)"|'([^']*)'/g)]
  const domains = named.map(([, double, single]) => double ?? single ?? '')
  return selector.expression(variableOf(device, driver, domains))
}

function variableOf(source: Device, driver: string, domains: readonly string[]): unknown {
  const attributes = Object.entries(source.attributes ?? {}).map(
    ([name, attribute]) => [name, attributeValue(attribute)] as const,
  )
  const capacity = Object.entries(source.capacity ?? {}).map(
    ([name, { value }]) => [name, celQuantity(value)] as const,
  )
  return new Map<string, unknown>([
    ['driver', driver],
    ['attributes', byDomain(attributes, driver, domains)],
    ['capacity', byDomain(capacity, driver, domains)],
    ['allowMultipleAllocations', source.allowMultipleAllocations ?? false],
  ])
}

/** Groups values by domain, then by name. */
function byDomain(
  values: readonly (readonly [name: string, value: unknown])[],
  driver: string,
  domains: readonly string[],
): ReadonlyMap<string, ReadonlyMap<string, unknown>> {
  const found = new Map<string, Map<string, unknown>>(domains.map((domain) => [domain, new Map()]))
  for (const [name, value] of values) {
    const slash = name.indexOf('/')
    const domain = slash < 0 ? driver : name.slice(0, slash)
    const known = found.get(domain) ?? new Map<string, unknown>()
    found.set(domain, known.set(name.slice(slash + 1), value))
  }
  return found
}

function attributeValue(attribute: DeviceAttribute): unknown {
  const { int, bool, string: text, version, ints, bools, strings, versions } = attribute
  if (int !== undefined) return BigInt(int)
  if (version !== undefined) return celVersion(version)
  return bool ?? text ?? ints?.map(BigInt) ?? versions?.map(celVersion) ?? bools ?? strings
}
