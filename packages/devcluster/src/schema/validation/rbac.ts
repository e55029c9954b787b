import { ownValue } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { jsonEqual } from '../shape-node.ts'
import { nameErrors } from './metadata.ts'
import { type Findings, listOf } from './reporting.ts'
import { checkLabelSelector } from './selectors.ts'

type Check = (object: StoredObject, old: StoredObject | undefined, found: Findings) => void

const group = 'rbac.authorization.k8s.io'

/** A Role cannot have rules for non-resource paths. */
export const checkRole: Check = (object, _old, found) => checkRules(object, true, found)

export const checkClusterRole: Check = (object, _old, found) => {
  checkRules(object, false, found)
  const aggregation = object['aggregationRule'] as Loose | undefined
  if (aggregation === undefined) return
  const selectors = listOf(aggregation, 'clusterRoleSelectors')
  const path = 'aggregationRule.clusterRoleSelectors'
  if (selectors.length === 0)
    found.required(path, 'at least one clusterRoleSelector required if aggregationRule is non-nil')
  for (const [index, selector] of selectors.entries()) {
    const before = found.errors.length
    checkLabelSelector(selector, `${path}[${index}]`, found)
    if (found.errors.length > before) found.invalid(`${path}[${index}]`, null, 'invalid label selector.')
  }
}

function checkRules(role: StoredObject, isNamespaced: boolean, found: Findings): void {
  for (const [index, rule] of listOf(role, 'rules').entries()) {
    checkRule(rule, `rules[${index}]`, isNamespaced, found)
  }
}

const sizeOf = (rule: Loose, field: string): number => {
  const list: unknown = ownValue(rule, field)
  return Array.isArray(list) ? list.length : 0
}

function checkRule(rule: Loose, path: string, isNamespaced: boolean, found: Findings): void {
  if (sizeOf(rule, 'verbs') === 0) found.required(`${path}.verbs`, 'verbs must contain at least one value')
  if (sizeOf(rule, 'nonResourceURLs') > 0) {
    const urls: unknown = rule['nonResourceURLs']
    const invalid = (words: string) => found.invalid(`${path}.nonResourceURLs`, urls, words)
    if (isNamespaced) invalid('namespaced rules cannot apply to non-resource URLs')
    if (['apiGroups', 'resources', 'resourceNames'].some((field) => sizeOf(rule, field) > 0)) {
      invalid('rules cannot apply to both regular resources and non-resource URLs')
    }
    return
  }
  if (sizeOf(rule, 'apiGroups') === 0) {
    found.required(`${path}.apiGroups`, 'resource rules must supply at least one api group')
  }
  if (sizeOf(rule, 'resources') === 0) {
    found.required(`${path}.resources`, 'resource rules must supply at least one resource')
  }
}

/** In a RoleBinding, a service account without a namespace is in that of the binding. */
export const checkRoleBinding: Check = (object, old, found) => {
  found.oneOf('roleRef.kind', (object['roleRef'] as Loose | undefined)?.['kind'] ?? '', [
    'ClusterRole',
    'Role',
  ])
  checkBinding(object, old, true, found)
}

export const checkClusterRoleBinding: Check = (object, old, found) => {
  found.oneOf('roleRef.kind', (object['roleRef'] as Loose | undefined)?.['kind'] ?? '', ['ClusterRole'])
  checkBinding(object, old, false, found)
}

function checkBinding(
  binding: StoredObject,
  old: StoredObject | undefined,
  isNamespaced: boolean,
  found: Findings,
): void {
  const reference = binding['roleRef'] as Loose | undefined
  found.oneOf('roleRef.apiGroup', reference?.['apiGroup'], [group])
  const name: unknown = reference?.['name']
  if (name === '' || name === undefined) found.required('roleRef.name')
  else if (typeof name === 'string') {
    for (const words of nameErrors(name, 'path')) found.invalid('roleRef.name', name, words)
  }
  if (old !== undefined && !jsonEqual(reference, old['roleRef'])) {
    found.invalid('roleRef', reference, 'cannot change roleRef')
  }
  for (const [index, subject] of listOf(binding, 'subjects').entries()) {
    checkSubject(subject, `subjects[${index}]`, isNamespaced, found)
  }
}

function checkSubject(subject: Loose, path: string, isNamespaced: boolean, found: Findings): void {
  const { kind, name, namespace, apiGroup } = subject
  if (name === '' || name === undefined) found.required(`${path}.name`)
  if (kind === 'ServiceAccount') {
    if (typeof name === 'string' && name !== '') {
      for (const words of nameErrors(name, 'subdomain')) found.invalid(`${path}.name`, name, words)
    }
    if (apiGroup !== undefined) found.oneOf(`${path}.apiGroup`, apiGroup, [''])
    if (!isNamespaced && !namespace) found.required(`${path}.namespace`)
  } else if (kind === 'User' || kind === 'Group') {
    found.oneOf(`${path}.apiGroup`, apiGroup, [group])
  } else {
    found.oneOf(`${path}.kind`, kind ?? '', ['Group', 'ServiceAccount', 'User'])
  }
}
