import { quantityNanos } from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import type { Loose } from '../columns/cells.ts'
import { qualifiedNameErrors } from './metadata.ts'
import { type Findings, listOf, textsOf } from './reporting.ts'

const computeResources = ['cpu', 'memory', 'limits.cpu', 'limits.memory', 'requests.cpu', 'requests.memory']
const counted = [
  'pods',
  'resourcequotas',
  'services',
  'replicationcontrollers',
  'secrets',
  'persistentvolumeclaims',
  'configmaps',
  'services.nodeports',
  'services.loadbalancers',
]
const standard: ReadonlySet<string> = new Set([
  ...computeResources,
  ...counted,
  'ephemeral-storage',
  'requests.ephemeral-storage',
  'limits.ephemeral-storage',
  'requests.storage',
])

const hugePages = /^(?:requests\.)?hugepages-/
const scopes: ReadonlySet<unknown> = new Set([
  'BestEffort',
  'CrossNamespacePodAffinity',
  'NotBestEffort',
  'NotTerminating',
  'PriorityClass',
  'Terminating',
  'VolumeAttributesClass',
])

/** Whether a quota with this scope may limit the resource. */
function admits(scope: unknown, resource: string): boolean {
  if (!scopes.has(scope)) return true
  if (scope === 'BestEffort') return resource === 'pods'
  if (scope === 'VolumeAttributesClass')
    return ['persistentvolumeclaims', 'requests.storage'].includes(resource)
  return resource === 'pods' || computeResources.includes(resource)
}

/** Validates the resources and scopes of a quota. */
export function checkResourceQuota(
  object: StoredObject,
  _old: StoredObject | undefined,
  found: Findings,
): void {
  const spec = (object['spec'] ?? {}) as Loose
  const hard: Readonly<Record<string, unknown>> = spec['hard'] ?? {}
  for (const [name, amount] of Object.entries(hard)) checkAmount(name, amount, `spec.hard[${name}]`, found)
  const bounded = Object.keys(hard).filter((name) => standard.has(name) || hugePages.test(name))
  const given = textsOf(spec, 'scopes')
  for (const scope of given) {
    if (!scopes.has(scope)) found.invalid('spec.scopes', given, 'unsupported scope')
    if (bounded.some((name) => !admits(scope, name))) {
      found.invalid('spec.scopes', given, 'unsupported scope applied to resource')
    }
  }
  checkPairs(given, 'spec.scopes', found)
  checkSelector(spec['scopeSelector'], bounded, 'spec.scopeSelector.matchExpressions', found)
}

function checkPairs(given: readonly string[], path: string, found: Findings): void {
  for (const scope of ['BestEffort', 'Terminating']) {
    if (given.includes(scope) && given.includes(`Not${scope}`))
      found.invalid(path, given, 'conflicting scopes')
  }
}

function checkAmount(name: string, amount: unknown, path: string, found: Findings): void {
  for (const words of qualifiedNameErrors(name)) found.invalid(path, name, words)
  if (!name.includes('/') && !standard.has(name) && !hugePages.test(name)) {
    found.invalid(path, name, 'must be a standard resource for quota')
  }
  const nanos = typeof amount === 'string' ? quantityNanos(amount) : undefined
  if (nanos === undefined) return
  if (nanos < 0n) found.invalid(path, amount, 'must be greater than or equal to 0')
  const isWhole = counted.includes(name) || name.includes('/')
  if (isWhole && !name.includes('storageclass.storage.k8s.io') && nanos % 1_000_000_000n !== 0n) {
    found.invalid(path, amount, 'must be an integer')
  }
}

function checkSelector(
  selector: Loose | undefined,
  bounded: readonly string[],
  path: string,
  found: Findings,
): void {
  const expressions = listOf(selector, 'matchExpressions')
  for (const { scopeName, operator, values } of expressions) {
    if (!scopes.has(scopeName)) found.invalid(`${path}.scopeName`, scopeName, 'unsupported scope')
    if (bounded.some((name) => !admits(scopeName, name))) {
      found.invalid(path, selector, 'unsupported scope applied to resource')
    }
    const hasValues = scopeName === 'PriorityClass' || scopeName === 'VolumeAttributesClass'
    if (scopes.has(scopeName) && !hasValues && operator !== 'Exists') {
      found.invalid(`${path}.operator`, operator, "must be 'Exists' for this scope")
    }
    const count = Array.isArray(values) ? values.length : 0
    if (operator === 'In' || operator === 'NotIn') {
      if (count === 0) {
        const words = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
        found.required(`${path}.values`, words)
      }
    } else if (operator === 'Exists' || operator === 'DoesNotExist') {
      if (count > 0) {
        const words = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
        found.invalid(`${path}.values`, values, words)
      }
    } else found.invalid(`${path}.operator`, operator, 'not a valid selector operator')
  }
  checkPairs(
    expressions.map(({ scopeName }) => String(scopeName)),
    'spec.scopeSelector.matchExpressions',
    found,
  )
}
