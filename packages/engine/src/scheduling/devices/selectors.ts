/** Caches answers of device selectors (devices.md 3.10). */
import type { Device } from '@tenon/api'
import { askDeviceSelector, type CompiledDeviceSelector, type DeviceSelectorAnswer } from '@tenon/cel'

/** Equal devices are evaluated once. */
export class SelectorAnswers {
  readonly #answers = new Map<CompiledDeviceSelector, Map<number, DeviceSelectorAnswer>>()

  of(selector: CompiledDeviceSelector, device: SelectableDevice): DeviceSelectorAnswer {
    let answers = this.#answers.get(selector)
    if (answers === undefined) {
      answers = new Map()
      this.#answers.set(selector, answers)
    }
    let answer = answers.get(device.selectorClass)
    if (answer === undefined) {
      answer = askDeviceSelector(selector, device.source, device.pool.driver)
      answers.set(device.selectorClass, answer)
    }
    return answer
  }
}

interface SelectableDevice {
  readonly selectorClass: number
  readonly source: Device
  readonly pool: { readonly driver: string }
}
