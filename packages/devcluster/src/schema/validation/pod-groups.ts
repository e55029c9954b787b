/** Validation of PodGroups and Workloads of `scheduling.k8s.io/v1alpha2` (gangs.md 5.2). */
import { ownValue } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { jsonEqual } from '../shape-node.ts'
import { dnsLabelErrors, nameErrors, qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf } from './reporting.ts'

const mostTopologyKeys = 1
const mostClaims = 4
const mostTemplates = 8
const highestPriority = 1_000_000_000

export function checkPodGroup(object: StoredObject, old: StoredObject | undefined, found: Findings): void {
  const spec: Loose = (object['spec'] as Loose | undefined) ?? {}
  if (old !== undefined) return found.immutable('spec', spec, old['spec'], jsonEqual)
  checkGroupSpec(spec, 'spec', found)
  const reference: Loose | undefined = spec['podGroupTemplateRef']
  if (reference === undefined) return
  const workload: Loose | undefined = reference['workload']
  const path = 'spec.podGroupTemplateRef'
  if (workload === undefined) return found.invalid(path, '', 'must specify one of: `workload`')
  checkName(workload['workloadName'], `${path}.workload.workloadName`, found)
  checkLabel(workload['podGroupTemplateName'], `${path}.workload.podGroupTemplateName`, found)
}

export function checkWorkload(object: StoredObject, old: StoredObject | undefined, found: Findings): void {
  const spec: Loose = (object['spec'] as Loose | undefined) ?? {}
  const path = 'spec.podGroupTemplates'
  const templates = listOf(spec, 'podGroupTemplates')
  if (old !== undefined) {
    const before = old['spec'] as Loose | undefined
    // It may be set later, once.
    if (before?.['controllerRef'] !== undefined)
      found.immutable('spec.controllerRef', spec['controllerRef'], before['controllerRef'], jsonEqual)
    return found.immutable(path, templates, before?.['podGroupTemplates'], jsonEqual)
  }
  if (templates.length === 0) found.required(path, 'must have at least one item')
  checkController(spec['controllerRef'], 'spec.controllerRef', found)
  checkCount(templates, mostTemplates, path, found)
  const names = new Set<unknown>()
  for (const [index, template] of templates.entries()) {
    const { name } = template
    checkLabel(name, `${path}[${index}].name`, found)
    if (names.has(name)) found.duplicate(`${path}[${index}]`, template)
    names.add(name)
    checkGroupSpec(template, `${path}[${index}]`, found)
  }
}

/** The common fields of a group and its template. */
function checkGroupSpec(spec: Loose, path: string, found: Findings): void {
  checkPolicy(spec['schedulingPolicy'], `${path}.schedulingPolicy`, found)
  const keys = listOf(spec['schedulingConstraints'], 'topology')
  checkCount(keys, mostTopologyKeys, `${path}.schedulingConstraints.topology`, found)
  for (const [index, { key }] of keys.entries()) {
    if (typeof key !== 'string' || key === '') continue
    for (const words of qualifiedNameErrors(key))
      found.invalid(`${path}.schedulingConstraints.topology[${index}].key`, key, words)
  }
  checkClaims(listOf(spec, 'resourceClaims'), `${path}.resourceClaims`, found)
  found.oneOf(`${path}.disruptionMode`, spec['disruptionMode'], ['Pod', 'PodGroup'])
  const { priorityClassName, priority } = spec
  if (priorityClassName !== '') checkName(priorityClassName, `${path}.priorityClassName`, found)
  if (typeof priority === 'number' && priority > highestPriority)
    found.invalid(`${path}.priority`, priority, `must be less than or equal to ${highestPriority}`)
}

/** Validates the controller reference of a Workload, which need not exist. */
function checkController(reference: Loose | undefined, path: string, found: Findings): void {
  if (reference === undefined) return
  const { apiGroup, kind, name } = reference
  if (typeof apiGroup === 'string' && apiGroup !== '')
    for (const words of nameErrors(apiGroup, 'subdomain')) found.invalid(`${path}.apiGroup`, apiGroup, words)
  for (const [field, value] of [
    ['kind', kind],
    ['name', name],
  ] as const) {
    if (typeof value !== 'string' || value === '') continue
    for (const words of nameErrors(value, 'path')) found.invalid(`${path}.${field}`, value, words)
  }
}

function checkPolicy(policy: Loose = {}, path: string, found: Findings): void {
  // Null counts as absent.
  const given = ['basic', 'gang'].filter((each) => (ownValue(policy, each) ?? null) !== null)
  if (given.length === 0) return found.invalid(path, '', 'must specify one of: `basic`, `gang`')
  if (given.length > 1)
    return found.invalid(path, `{${given.join(', ')}}`, 'must specify exactly one of: `basic`, `gang`')
  const minCount: unknown = policy['gang']?.minCount
  if (minCount === 0) found.required(`${path}.gang.minCount`)
  else if (typeof minCount === 'number' && minCount < 1)
    found.invalid(`${path}.gang.minCount`, minCount, 'must be greater than or equal to 1')
}

function checkClaims(claims: readonly Loose[], path: string, found: Findings): void {
  checkCount(claims, mostClaims, path, found)
  const names = new Set<unknown>()
  for (const [index, { name, resourceClaimName, resourceClaimTemplateName }] of claims.entries()) {
    const at = `${path}[${index}]`
    checkLabel(name, `${at}.name`, found)
    if (names.has(name)) found.duplicate(at, claims[index])
    names.add(name)
    const references = { resourceClaimName, resourceClaimTemplateName }
    const given = Object.entries(references).filter(([, each]) => each !== undefined)
    if (given.length !== 1) {
      const words = 'must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`'
      found.invalid(at, claims[index], words)
    }
    for (const [field, each] of given) checkName(each, `${at}.${field}`, found)
  }
}

function checkCount(list: readonly Loose[], most: number, path: string, found: Findings): void {
  if (list.length > most) found.tooMany(path, list.length, most)
}

function checkName(name: unknown, path: string, found: Findings): void {
  if (typeof name !== 'string') return
  for (const words of nameErrors(name, 'subdomain')) found.invalid(path, name, words)
}

function checkLabel(name: unknown, path: string, found: Findings): void {
  if (typeof name !== 'string' || name === '') return
  for (const words of dnsLabelErrors(name)) found.invalid(path, name, words)
}
