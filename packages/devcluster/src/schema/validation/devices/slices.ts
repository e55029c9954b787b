/** Validation of ResourceSlices and DeviceTaintRules. */
import { ownValue } from '@tenon/api'
import type { StoredObject } from '../../../contract.ts'
import type { Loose } from '../../columns/cells.ts'
import { jsonEqual } from '../../shape-node.ts'
import { nameErrors } from '../metadata.ts'
import { type Findings, listOf, textsOf } from '../reporting.ts'
import { checkNodeTerms } from '../scheduling.ts'
import { checkDriverName } from '../volumes.ts'
import { checkCapacity } from './capacity.ts'
import {
  checkItems,
  checkName,
  checkOnce,
  checkPoolName,
  checkQualified,
  checkRequiredName,
  checkTaint,
} from './parts.ts'

/** Limits of the API. */
const most = {
  devices: 128,
  /** The limit for devices with taints, counters or list attributes. */
  advancedDevices: 64,
  sets: 8,
  counters: 32,
  consumptions: 2,
  named: 32,
  values: 48,
  taints: 16,
  conditions: 4,
}
const longestValue = 64
const listTypes = ['bools', 'ints', 'strings', 'versions'] as const
const prerelease = String.raw`(0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)`
const version = new RegExp(
  String.raw`^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)` +
    String.raw`(-${prerelease}(\.${prerelease})*)?(\+[0-9a-zA-Z-]+(\.[0-9a-zA-Z-]+)*)?$`,
)

/** Validates a slice; its pool and node selection are immutable. */
export function checkResourceSlice(
  object: StoredObject,
  old: StoredObject | undefined,
  found: Findings,
): void {
  const spec = (object['spec'] ?? {}) as Loose
  const pool = (spec['pool'] ?? {}) as Loose
  checkDriver(spec['driver'], 'spec.driver', found)
  checkPool(pool, found)
  if (old !== undefined) {
    const before = (old['spec'] ?? {}) as Loose
    const poolBefore = (before['pool'] ?? {}) as Loose
    found.immutable('spec.pool.name', pool['name'], poolBefore['name'], jsonEqual)
    found.immutable('spec.driver', spec['driver'], before['driver'], jsonEqual)
    found.immutable('spec.nodeName', spec['nodeName'], before['nodeName'], jsonEqual)
  }
  checkPlace(spec, 'spec', ['nodeName', 'nodeSelector', 'allNodes', 'perDeviceNodeSelection'], found)
  if (spec['nodeSelector'] !== undefined) checkOneTerm(spec['nodeSelector'] as Loose, found)
  if (spec['sharedCounters'] !== undefined && spec['devices'] !== undefined)
    found.invalid('spec', '', 'only one of `sharedCounters` or `devices` is allowed')
  checkDevices(spec, found)
  checkItems(spec, 'sharedCounters', { path: 'spec', most: most.sets, found }, (set, path) => {
    checkRequiredName(set['name'], `${path}.name`, found)
    checkCounters(set, path, found)
  })
  checkOnce(
    listOf(spec, 'sharedCounters').map(({ name }) => name),
    'spec.sharedCounters',
    found,
  )
}

export function checkDeviceTaintRule(
  object: StoredObject,
  _old: StoredObject | undefined,
  found: Findings,
): void {
  const { deviceSelector, taint } = (object['spec'] ?? {}) as Loose
  const { driver, pool, device } = (deviceSelector ?? {}) as Loose
  if (driver !== undefined) checkDriver(driver, 'spec.deviceSelector.driver', found)
  if (pool !== undefined) checkPoolName(pool, 'spec.deviceSelector.pool', found)
  if (device !== undefined) checkName(device, 'spec.deviceSelector.device', found)
  if (taint !== undefined) checkTaint(taint as Loose, 'spec.taint', found)
}

function checkDriver(name: unknown, path: string, found: Findings): void {
  if (name === undefined || name === '') found.required(path)
  else checkDriverName(name, path, found)
}

function checkPool({ name, generation, resourceSliceCount }: Loose, found: Findings): void {
  checkPoolName(name, 'spec.pool.name', found)
  if (typeof resourceSliceCount === 'number' && resourceSliceCount <= 0)
    found.invalid('spec.pool.resourceSliceCount', resourceSliceCount, 'must be greater than zero')
  if (typeof generation === 'number' && generation < 0)
    found.invalid('spec.pool.generation', generation, 'must be greater than or equal to zero')
}

/** Exactly one of the fields must say which nodes have access to the devices. */
function checkPlace(record: Loose, path: string, fields: readonly string[], found: Findings): void {
  const { nodeName, nodeSelector } = record
  if (nodeName === '')
    found.invalid(`${path}.nodeName`, nodeName, 'must be either unset or set to a non-empty string')
  else if (nodeName !== undefined)
    for (const words of nameErrors(String(nodeName), 'subdomain'))
      found.invalid(`${path}.nodeName`, nodeName, words)
  if (nodeSelector !== undefined) checkNodeTerms(nodeSelector as Loose, `${path}.nodeSelector`, found)
  for (const field of ['allNodes', 'perDeviceNodeSelection'])
    if (fields.includes(field) && ownValue(record, field) === false)
      found.invalid(`${path}.${field}`, false, 'must be either unset or set to true')
  const isGiven = (value: unknown) => value !== undefined && value !== '' && value !== false
  const given = fields.filter((field) => isGiven(ownValue(record, field)))
  const words = `exactly one of ${fields.map((field) => `\`${field}\``).join(', ')} is required`
  if (given.length === 0) found.required(path, words)
  if (given.length > 1) found.invalid(path, `{${given.join(', ')}}`, `${words}, but multiple fields are set`)
}

/** The scheduler merges the selectors of slices, which requires a single term each. */
function checkOneTerm(selector: Loose, found: Findings): void {
  const { length } = listOf(selector, 'nodeSelectorTerms')
  if (length === 1) return
  const words = 'must have exactly one node selector term'
  found.invalid('spec.nodeSelector.nodeSelectorTerms', length, words)
}

function checkDevices(spec: Loose, found: Findings): void {
  const devices = listOf(spec, 'devices')
  const bound = devices.some(isAdvanced) ? most.advancedDevices : most.devices
  const isPlaced = spec['perDeviceNodeSelection'] === true
  checkItems(spec, 'devices', { path: 'spec', most: bound, found }, (device, path) => {
    checkName(device['name'], `${path}.name`, found)
    checkValues(device, path, found)
    checkItems(device, 'taints', { path, most: most.taints, found }, (taint, at) =>
      checkTaint(taint, at, found),
    )
    checkConsumption(device, path, found)
    if (isPlaced) checkPlace(device, path, ['nodeName', 'nodeSelector', 'allNodes'], found)
    else if (['nodeName', 'nodeSelector', 'allNodes'].some((field) => ownValue(device, field) !== undefined))
      found.invalid(
        path,
        null,
        '`nodeName`, `nodeSelector` and `allNodes` can only be set if `perDeviceNodeSelection` is set to true in the ResourceSlice spec',
      )
    checkBinding(device, path, found)
  })
  if (devices.length <= bound)
    checkOnce(
      devices.map(({ name }) => name),
      'spec.devices',
      found,
    )
}

function isAdvanced(device: Loose): boolean {
  return (
    listOf(device, 'taints').length > 0 ||
    listOf(device, 'consumesCounters').length > 0 ||
    attributesOf(device).some(([, value]) => listTypes.some((type) => value[type] !== undefined))
  )
}

function attributesOf(device: Loose): readonly (readonly [string, Loose])[] {
  return Object.entries((device['attributes'] ?? {}) as Readonly<Record<string, Loose>>)
}

function checkValues(device: Loose, path: string, found: Findings): void {
  const attributes = attributesOf(device)
  const capacities = Object.entries((device['capacity'] ?? {}) as Readonly<Record<string, Loose>>)
  const named = attributes.length + capacities.length
  if (named > most.named)
    found.invalid(path, named, `the total number of attributes and capacities must not exceed ${most.named}`)
  const values = attributes.reduce((sum, [, value]) => sum + Math.max(1, itemCount(value)), 0)
  if (values > most.values)
    found.invalid(path, values, `the total number of attribute values must not exceed ${most.values}`)
  for (const [key, value] of attributes) {
    checkQualified(key, `${path}.attributes`, found)
    checkAttribute(value, `${path}.attributes[${key}]`, found)
  }
  const isShared = device['allowMultipleAllocations'] === true
  for (const [key, capacity] of capacities) {
    checkQualified(key, `${path}.capacity`, found)
    const at = `${path}.capacity[${key}].requestPolicy`
    if (isShared) checkCapacity(capacity, at, found)
    else if (capacity['requestPolicy'] !== undefined)
      found.forbidden(at, 'allowMultipleAllocations must be true')
  }
}

function itemCount(value: Loose): number {
  return listTypes.reduce(
    (sum, type) => sum + ((value[type] as readonly unknown[] | undefined)?.length ?? 0),
    0,
  )
}

function checkAttribute(value: Loose, path: string, found: Findings): void {
  const given = Object.keys(value)
  if (given.length !== 1) found.invalid(path, given.join(', '), 'exactly one value must be specified')
  const { string: text, version: number } = value
  if (text !== undefined) checkText(String(text), `${path}.string`, found)
  if (number !== undefined) checkVersion(String(number), `${path}.version`, found)
  for (const type of listTypes)
    if (Array.isArray(value[type]) && value[type].length === 0)
      found.invalid(`${path}.${type}`, [], 'must not be empty if specified')
  for (const [index, item] of textsOf(value, 'strings').entries())
    checkText(item, `${path}.strings[${index}]`, found)
  for (const [index, item] of textsOf(value, 'versions').entries())
    checkVersion(item, `${path}.versions[${index}]`, found)
}

function checkText(text: string, path: string, found: Findings): void {
  if (Buffer.byteLength(text) > longestValue) found.tooLong(path, longestValue)
}

function checkVersion(text: string, path: string, found: Findings): void {
  if (!version.test(text)) found.invalid(path, text, 'must be a string compatible with semver.org spec 2.0.0')
  checkText(text, path, found)
}

function checkConsumption(device: Loose, path: string, found: Findings): void {
  checkItems(device, 'consumesCounters', { path, most: most.consumptions, found }, (consumption, at) => {
    checkRequiredName(consumption['counterSet'], `${at}.counterSet`, found)
    checkCounters(consumption, at, found)
  })
  checkOnce(
    listOf(device, 'consumesCounters').map(({ counterSet }) => counterSet),
    `${path}.consumesCounters`,
    found,
  )
}

function checkCounters(record: Loose, path: string, found: Findings): void {
  const names = Object.keys((record['counters'] ?? {}) as object)
  const at = `${path}.counters`
  if (names.length === 0) return found.required(at)
  if (names.length > most.counters) return found.tooMany(at, names.length, most.counters)
  for (const name of names) checkName(name, at, found)
}

/** Validates binding conditions and binding failure conditions. */
function checkBinding(device: Loose, path: string, found: Findings): void {
  const fields = ['bindingConditions', 'bindingFailureConditions'] as const
  const [wanted, failed] = fields.map((field) => textsOf(device, field)) as [
    readonly string[],
    readonly string[],
  ]
  for (const [index, list] of [wanted, failed].entries()) {
    const at = `${path}.${fields[index]}`
    if (list.length > most.conditions) found.tooMany(at, list.length, most.conditions)
    else checkOnce(list, at, found)
  }
  const overlaps = 'bindingFailureConditions must not overlap with bindingConditions'
  for (const [index, condition] of failed.entries())
    if (wanted.includes(condition))
      found.invalid(`${path}.bindingFailureConditions[${index}]`, condition, overlaps)
  for (const [field, other, isAlone] of [
    [...fields, failed.length > 0 && wanted.length === 0],
    [...fields.toReversed(), wanted.length > 0 && failed.length === 0],
  ] as const)
    if (isAlone) found.invalid(`${path}.${field}`, [], `${field} are required to use ${other}`)
}
