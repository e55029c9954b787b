/** Validation of names, taints and lists in claims, slices and taint rules. */
import type { Loose } from '../../columns/cells.ts'
import { dnsLabelErrors, labelValueErrors, nameErrors, qualifiedNameErrors } from '../metadata.ts'
import { type Findings, listOf } from '../reporting.ts'
import { checkDriverName } from '../volumes.ts'

const effects = ['NoExecute', 'NoSchedule', 'None']
const longestIdentifier = 32
const identifier = /^[A-Za-z_][A-Za-z0-9_]*$/
const identifierWords =
  "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters " +
  "or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for validation is '[A-Za-z_][A-Za-z0-9_]*')"

/** Validates a DNS label; an empty one is reported as invalid. */
export function checkName(value: unknown, path: string, found: Findings): void {
  for (const words of dnsLabelErrors(String(value ?? ''))) found.invalid(path, value ?? '', words)
}

/** Validates a DNS label; an empty one is reported as required. */
export function checkRequiredName(value: unknown, path: string, found: Findings): void {
  if (value === undefined || value === '') found.required(path)
  else checkName(value, path, found)
}

/** Validates a pool name: DNS subdomains separated by slashes. */
export function checkPoolName(name: unknown, path: string, found: Findings): void {
  if (name === undefined || name === '') return found.required(path)
  const text = String(name)
  if (text.length > 253) found.tooLong(path, 253)
  for (const part of text.split('/'))
    for (const words of nameErrors(part, 'subdomain')) found.invalid(path, part, words)
}

/** Validates the name of an attribute or capacity: an identifier with an optional domain. */
export function checkQualified(name: string, path: string, found: Findings): void {
  const [first = '', second, third] = name.split('/')
  // The API server does not check names with several slashes.
  if (third !== undefined) return
  if (second === undefined) return checkIdentifier(first, path, found)
  if (first === '') found.invalid(path, '', 'the domain must not be empty')
  else checkDriverName(first, path, found)
  if (second === '') found.invalid(path, '', 'the name must not be empty')
  else checkIdentifier(second, path, found)
}

function checkIdentifier(name: string, path: string, found: Findings): void {
  if (name.length > longestIdentifier) found.tooLong(path, longestIdentifier)
  if (!identifier.test(name)) found.invalid(path, name, identifierWords)
}

/** Validates the items of a list; if it is too long, only that is reported. */
export function checkItems(
  record: Loose | undefined,
  field: string,
  { path, most, found }: { readonly path: string; readonly most: number; readonly found: Findings },
  check: (item: Loose, path: string) => void,
): void {
  const items = listOf(record, field)
  const at = `${path}.${field}`
  if (items.length > most) return found.tooMany(at, items.length, most)
  for (const [index, item] of items.entries()) check(item, `${at}[${index}]`)
}

/** Reports duplicate items of a list. */
export function checkOnce(keys: readonly unknown[], path: string, found: Findings): void {
  const seen = new Set<unknown>()
  for (const [index, key] of keys.entries()) {
    if (seen.has(key)) found.duplicate(`${path}[${index}]`, key)
    seen.add(key)
  }
}

/** Validates a device taint. */
export function checkTaint({ key, value, effect }: Loose, path: string, found: Findings): void {
  checkLabelKey(key, `${path}.key`, found)
  for (const words of labelValueErrors(String(value ?? ''))) found.invalid(`${path}.value`, value, words)
  if (effect === undefined || effect === '') found.required(`${path}.effect`)
  else found.oneOf(`${path}.effect`, effect, effects)
}

/** Validates a toleration of device taints. */
export function checkToleration(
  { key, operator = 'Equal', value, effect }: Loose,
  path: string,
  found: Findings,
): void {
  if (key !== undefined && key !== '') checkLabelKey(key, `${path}.key`, found)
  if (operator === '') found.required(`${path}.operator`)
  else found.oneOf(`${path}.operator`, operator, ['Equal', 'Exists'])
  if (operator === 'Exists' && value !== undefined && value !== '')
    found.invalid(`${path}.value`, value, 'must be empty for operator `Exists`')
  if (operator === 'Equal')
    for (const words of labelValueErrors(String(value ?? ''))) found.invalid(`${path}.value`, value, words)
  if (effect !== '') found.oneOf(`${path}.effect`, effect, effects)
}

function checkLabelKey(key: unknown, path: string, found: Findings): void {
  for (const words of qualifiedNameErrors(String(key ?? ''))) found.invalid(path, key ?? '', words)
}
