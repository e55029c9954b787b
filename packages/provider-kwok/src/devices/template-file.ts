/**
 * Devices of an instance type in a file: `resourceSliceTemplates` and `attributeBindings` (devices.md 3.2).
 */
import { type AttributeBinding, isQuantity, isRecord, ownValue, type ResourceSliceTemplate } from '@tenon/api'

/** An invalid value; the message names the field. */
export class DeviceFieldError extends Error {}

type Loose = Readonly<Record<string, unknown>>

const driverForm = /^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$/
const nameForm = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
const attributeTypes: Readonly<Record<string, string>> = {
  int: 'number',
  bool: 'boolean',
  string: 'string',
  version: 'string',
}

/** @throws DeviceFieldError */
export function readTemplates(value: unknown): readonly ResourceSliceTemplate[] {
  const pools = new Set<string>()
  return listOf(value, 'resourceSliceTemplates').map((item, index) => {
    const at = `resourceSliceTemplates[${index}]`
    const driver = matching(item['driver'], driverForm, `${at}.driver`, 'a DNS name such as gpu.example.com')
    const pool = matching(item['pool'], nameForm, `${at}.pool`, 'a name of letters, digits and dashes')
    if (pools.has(`${driver}/${pool}`))
      throw new DeviceFieldError(
        `${at}: another template has the same driver and pool; put the devices together`,
      )
    pools.add(`${driver}/${pool}`)
    const names = new Set<string>()
    for (const [place, device] of listOf(item['devices'], `${at}.devices`).entries()) {
      const name = checkDevice(device, `${at}.devices[${place}]`)
      if (names.has(name)) throw new DeviceFieldError(`${at}.devices[${place}].name: ${name} is there twice`)
      names.add(name)
    }
    const counters = item['sharedCounters']
    if (counters !== undefined)
      for (const set of listOf(counters, `${at}.sharedCounters`)) checkCounters(set, at)
    return item as unknown as ResourceSliceTemplate
  })
}

/** @throws DeviceFieldError */
export function readBindings(value: unknown): readonly AttributeBinding[] {
  return listOf(value, 'attributeBindings').map((item, index) => {
    const at = `attributeBindings[${index}]`
    matching(item['attribute'], /./, `${at}.attribute`, 'the name of an attribute')
    for (const [place, ref] of listOf(item['devices'], `${at}.devices`).entries())
      for (const field of ['driver', 'pool', 'device'])
        matching(ownValue(ref, field), /./, `${at}.devices[${place}].${field}`, 'a text')
    return item as unknown as AttributeBinding
  })
}

/** @returns the name of the device. */
function checkDevice(device: Loose, at: string): string {
  const name = matching(device['name'], nameForm, `${at}.name`, 'a name of letters, digits and dashes')
  for (const [attribute, value] of entriesOf(device['attributes'], `${at}.attributes`)) {
    const [type, given] = typeof value === 'object' && value !== null ? (Object.entries(value)[0] ?? []) : []
    const expected = ownValue(attributeTypes, type ?? '')
    if (expected === undefined || typeof given !== expected || Object.keys(value as object).length !== 1)
      throw new DeviceFieldError(`${at}.attributes.${attribute}: give one of int, bool, string and version`)
  }
  for (const [dimension, value] of entriesOf(device['capacity'], `${at}.capacity`))
    checkQuantity((value as Loose | null)?.['value'], `${at}.capacity.${dimension}.value`)
  const consumed = device['consumesCounters']
  if (consumed !== undefined)
    for (const [place, use] of listOf(consumed, `${at}.consumesCounters`).entries()) {
      matching(
        use['counterSet'],
        nameForm,
        `${at}.consumesCounters[${place}].counterSet`,
        'the name of a set',
      )
      checkAmounts(use['counters'], `${at}.consumesCounters[${place}].counters`)
    }
  return name
}

function checkCounters(set: Loose, at: string): void {
  matching(set['name'], nameForm, `${at}.sharedCounters.name`, 'the name of a set')
  checkAmounts(set['counters'], `${at}.sharedCounters.counters`)
}

function checkAmounts(counters: unknown, at: string): void {
  for (const [counter, value] of entriesOf(counters, at))
    checkQuantity((value as Loose | null)?.['value'], `${at}.${counter}.value`)
}

function checkQuantity(value: unknown, at: string): void {
  if (typeof value !== 'string' || !isQuantity(value))
    throw new DeviceFieldError(`${at}: give a quantity such as 40Gi`)
}

function matching(value: unknown, form: RegExp, at: string, meant: string): string {
  if (typeof value !== 'string' || !form.test(value)) throw new DeviceFieldError(`${at}: give ${meant}`)
  return value
}

function listOf(value: unknown, at: string): readonly Loose[] {
  if (!Array.isArray(value) || !(value as readonly unknown[]).every(isRecord))
    throw new DeviceFieldError(`${at}: give an array of objects`)
  return value as readonly Loose[]
}

function entriesOf(value: unknown, at: string): readonly (readonly [string, unknown])[] {
  if (value === undefined) return []
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new DeviceFieldError(`${at}: give an object`)
  return Object.entries(value as Loose)
}
