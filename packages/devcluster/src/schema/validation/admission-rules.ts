import type { Loose } from '../columns/cells.ts'
import { nameErrors } from './metadata.ts'
import { type Findings, listOf, textsOf } from './reporting.ts'
import { checkLabelSelector } from './selectors.ts'

const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE']

/** Validates the rules of a webhook or policy. */
export function checkRules(rules: readonly Loose[], path: string, found: Findings): void {
  for (const [index, rule] of rules.entries()) checkRule(rule, `${path}[${index}]`, found)
}

function checkRule(rule: Loose, path: string, found: Findings): void {
  const names = textsOf(rule, 'resourceNames')
  for (const [index, name] of names.entries()) {
    for (const words of nameErrors(name, 'path'))
      found.invalid(`${path}.resourceNames[${index}]`, name, words)
    if (names.indexOf(name) < index) found.duplicate(`${path}.resourceNames[${index}]`, name)
  }
  for (const [field, others] of [
    ['operations', 'operations'],
    ['apiGroups', 'API groups'],
    ['apiVersions', 'API versions'],
  ] as const) {
    const given = textsOf(rule, field)
    if (given.length === 0) found.required(`${path}.${field}`)
    if (given.length > 1 && given.includes('*')) {
      found.invalid(`${path}.${field}`, given, `if '*' is present, must not specify other ${others}`)
    }
  }
  for (const [index, operation] of textsOf(rule, 'operations').entries()) {
    found.oneOf(`${path}.operations[${index}]`, operation, operations)
  }
  for (const [index, version] of textsOf(rule, 'apiVersions').entries()) {
    if (version === '') found.required(`${path}.apiVersions[${index}]`)
  }
  checkResources(textsOf(rule, 'resources'), `${path}.resources`, found)
  found.oneOf(`${path}.scope`, rule['scope'], ['*', 'Cluster', 'Namespaced'])
}

function checkResources(resources: readonly string[], path: string, found: Findings): void {
  if (resources.length === 0) found.required(path)
  const before = new Set<string>()
  for (const [index, resource] of resources.entries()) {
    const at = `${path}[${index}]`
    if (resource === '') found.required(at)
    const [owner = '', part] = resource.split('/')
    if (part === undefined) continue
    for (const wide of [`${owner}/*`, `*/${part}`]) {
      if (before.has(wide))
        found.invalid(at, resource, `if '${wide}' is present, must not specify ${resource}`)
    }
    before.add(resource)
  }
  if (resources.length > 1 && resources.includes('*/*')) {
    found.invalid(path, resources, "if '*/*' is present, must not specify other resources")
  }
  // The last resource without a slash decides.
  const bare = resources.filter((resource) => resource !== '' && !resource.includes('/'))
  if (bare.includes('*') && bare.at(-1) !== '*') {
    found.invalid(path, resources, "if '*' is present, must not specify other resources without subresources")
  }
}

/** Validates `matchResources` of a policy or binding. */
export function checkMatchResources(match: Loose | undefined, path: string, found: Findings): void {
  if (match === undefined) return
  found.oneOf(`${path}.matchPolicy`, match['matchPolicy'], ['Equivalent', 'Exact'])
  checkLabelSelector(match['namespaceSelector'], `${path}.namespaceSelector`, found)
  checkLabelSelector(match['objectSelector'], `${path}.objectSelector`, found)
  checkRules(listOf(match, 'resourceRules'), `${path}.resourceRules`, found)
  checkRules(listOf(match, 'excludeResourceRules'), `${path}.excludeResourceRules`, found)
}
