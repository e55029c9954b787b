/** `matchAttribute` and `distinctAttribute` of a claim while its devices are chosen (devices.md 3.12). */
import type { CompiledDevice } from './pools.ts'
import type { CompiledConstraint } from './requests.ts'

/**
 * What the chosen devices have in common: an attribute value, or a binding group whose value is not known yet.
 */
type Pin =
  | { readonly kind: 'values'; readonly values: ReadonlySet<string> }
  | { readonly kind: 'bound'; readonly group: number }

/** One constraint with the devices that were chosen so far. */
export class ConstraintState {
  readonly rule: CompiledConstraint
  readonly #pins: Pin[] = []

  constructor(rule: CompiledConstraint) {
    this.rule = rule
  }

  /** Adds the device if the constraint allows it; {@link remove} removes the last one. */
  add(device: CompiledDevice): boolean {
    const next = this.rule.kind === 'match' ? this.#matching(device) : this.#distinct(device)
    if (next === undefined) return false
    this.#pins.push(next)
    return true
  }

  remove(): void {
    this.#pins.pop()
  }

  #matching(device: CompiledDevice): Pin | undefined {
    const { attribute } = this.rule
    const before = this.#pins.at(-1)
    const values = device.attributes.get(attribute)
    if (values !== undefined && values.size > 0) {
      if (before === undefined) return { kind: 'values', values }
      if (before.kind === 'bound') return undefined
      const common = before.values.intersection(values)
      return common.size === 0 ? undefined : { kind: 'values', values: common }
    }
    const group = device.bindings.get(attribute)
    if (group === undefined) return undefined
    if (before === undefined) return { kind: 'bound', group }
    return before.kind === 'bound' && before.group === group ? before : undefined
  }

  #distinct(device: CompiledDevice): Pin | undefined {
    const values = device.attributes.get(this.rule.attribute)
    if (values === undefined || values.size === 0) return undefined
    const before = this.#pins.at(-1)
    if (before === undefined || before.kind === 'bound') return { kind: 'values', values }
    return before.values.isDisjointFrom(values)
      ? { kind: 'values', values: before.values.union(values) }
      : undefined
  }
}
