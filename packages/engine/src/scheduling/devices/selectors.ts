/** Selectors of devices: CEL over one device (devices.md 3.10). */
import type { Device, DeviceAttribute } from '@tenon/api'
import { celQuantity, celVersion, type CelExpression, compileCelBool } from '@tenon/cel'

/** The longest expression that the API allows, in characters. */
const longestExpression = 10 * 1024

/** A selector that can be asked, or why it cannot. */
export type CompiledSelector =
  | { readonly expression: CelExpression; readonly text: string; readonly problem?: undefined }
  | { readonly problem: string; readonly expression?: undefined }

const compiled = new Map<string, CompiledSelector>()
const mostCompiled = 1000

/** Compiles an expression once; it is pure, so that all decisions share it. */
export function compileSelector(text: string): CompiledSelector {
  const known = compiled.get(text)
  if (known !== undefined) return known
  const fresh = compileUncached(text)
  if (compiled.size >= mostCompiled) compiled.clear()
  compiled.set(text, fresh)
  return fresh
}

function compileUncached(text: string): CompiledSelector {
  if (text.length > longestExpression)
    return { problem: `the expression is longer than ${longestExpression}` }
  const expression = compileCelBool('device', text)
  return typeof expression === 'string' ? { problem: expression } : { expression, text }
}

/** What a selector says of a device; an evaluation that fails says why. */
export type SelectorAnswer = boolean | { readonly problem: string }

/** Answers of selectors, each worked out once for devices that are alike. */
export class SelectorAnswers {
  readonly #answers = new Map<CompiledSelector, Map<number, SelectorAnswer>>()

  of(selector: CompiledSelector, device: SelectableDevice): SelectorAnswer {
    let answers = this.#answers.get(selector)
    if (answers === undefined) {
      answers = new Map()
      this.#answers.set(selector, answers)
    }
    let answer = answers.get(device.likeness)
    if (answer === undefined) {
      answer = ask(selector, device)
      answers.set(device.likeness, answer)
    }
    return answer
  }
}

interface SelectableDevice {
  readonly likeness: number
  readonly source: Device
  readonly pool: { readonly driver: string }
}

function ask(selector: CompiledSelector, device: SelectableDevice): SelectorAnswer {
  if (selector.expression === undefined) return { problem: selector.problem }
  // A domain that a device has nothing in is empty, unless the expression asks whether it is there.
  const asksForDomains = /\bin\s+device\s*\.\s*(attributes|capacity)\b/.test(selector.text)
  const named = asksForDomains ? [] : [...selector.text.matchAll(/"([^"]*)"|'([^']*)'/g)]
  return selector.expression(
    variableOf(
      device,
      named.map(([, double, single]) => double ?? single ?? ''),
    ),
  )
}

/** The variable `device`. */
function variableOf({ source, pool: { driver } }: SelectableDevice, domains: readonly string[]): unknown {
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

/** Values by domain, then by name. */
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
