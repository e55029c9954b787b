import {
  type KubeObject,
  type PersistentVolumeClaim,
  type Pod,
  type PodAffinityTerm,
  type ResourceList,
  storageClassNameOf,
} from '@tenon/api'
import type { StoredObject } from '../../contract.ts'
import { addAmounts, type Amounts, amountsOf, podAmounts } from './amounts.ts'

/** The parts of a ResourceQuota that decide. */
export interface ResourceQuota extends KubeObject {
  readonly spec?: {
    readonly hard?: ResourceList
    readonly scopes?: readonly string[]
    readonly scopeSelector?: { readonly matchExpressions?: readonly ScopeRequirement[] }
  }
  readonly status?: { readonly hard?: ResourceList; readonly used?: ResourceList }
}

interface ScopeRequirement {
  readonly scopeName: string
  readonly operator: string
  readonly values?: readonly string[]
}

const one = 1_000_000_000n
/** Resources counted by their plain name, each with its collection. */
const countedByName: ReadonlySet<string> = new Set([
  'services',
  'replicationcontrollers',
  'resourcequotas',
  'secrets',
  'configmaps',
  'persistentvolumeclaims',
])
const claimSuffix = '.storageclass.storage.k8s.io/'

/** The collections whose objects a quota counts. */
export function collectionsOf(quota: ResourceQuota): ReadonlySet<string> {
  const collections = new Set<string>()
  for (const name of Object.keys(quota.spec?.hard ?? {})) {
    if (name.startsWith('count/')) collections.add(name.slice('count/'.length))
    else if (countedByName.has(name)) collections.add(name)
    else if (name.startsWith('services.')) collections.add('services')
    else if (name === 'requests.storage' || name.includes(claimSuffix))
      collections.add('persistentvolumeclaims')
    else collections.add('pods')
  }
  return collections
}

/** What an object uses of a quota; empty if it is out of scope. */
export function usageOf(quota: ResourceQuota, collection: string, object: StoredObject): Amounts {
  const usage: Amounts = new Map()
  const scopes = scopesOf(quota)
  if (scopes.length > 0) {
    if (collection !== 'pods') return usage
    if (!scopes.every((scope) => inScope(scope, object as unknown as Pod))) return usage
  }
  const all: Amounts = new Map([[`count/${collection}`, one]])
  if (countedByName.has(collection)) all.set(collection, one)
  if (collection === 'pods') addAmounts(all, podUsage(object as unknown as Pod))
  else if (collection === 'services') addAmounts(all, serviceUsage(object))
  else if (collection === 'persistentvolumeclaims')
    addAmounts(all, claimUsage(object as unknown as PersistentVolumeClaim))
  for (const name of Object.keys(quota.spec?.hard ?? {})) {
    const amount = all.get(name)
    if (amount !== undefined) usage.set(name, amount)
  }
  return usage
}

/** Resources that a quota may name without `requests.`. */
const plainNames = /^(?:cpu|memory|ephemeral-storage|hugepages-.+)$/

function podUsage({ spec, status }: Pod): Amounts {
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return new Map()
  const usage: Amounts = new Map([['pods', one]])
  for (const [name, amount] of podAmounts(spec, 'requests')) {
    usage.set(`requests.${name}`, amount)
    if (plainNames.test(name)) usage.set(name, amount)
  }
  for (const [name, amount] of podAmounts(spec, 'limits')) usage.set(`limits.${name}`, amount)
  return usage
}

function serviceUsage(object: StoredObject): Amounts {
  const { type, ports = [] } = (object['spec'] ?? {}) as {
    readonly type?: string
    readonly ports?: readonly { readonly nodePort?: number }[]
  }
  const usage: Amounts = new Map()
  const nodePorts = ports.filter(({ nodePort }) => (nodePort ?? 0) !== 0).length
  usage.set('services.nodeports', BigInt(type === 'ClusterIP' ? 0 : nodePorts) * one)
  usage.set('services.loadbalancers', type === 'LoadBalancer' ? one : 0n)
  return usage
}

function claimUsage(claim: PersistentVolumeClaim): Amounts {
  const usage: Amounts = new Map()
  const storage = amountsOf(claim.spec.resources?.requests).get('storage') ?? 0n
  usage.set('requests.storage', storage)
  const storageClass = storageClassNameOf(claim) ?? ''
  if (storageClass === '') return usage
  usage.set(`${storageClass}${claimSuffix}requests.storage`, storage)
  usage.set(`${storageClass}${claimSuffix}persistentvolumeclaims`, one)
  return usage
}

function scopesOf({ spec }: ResourceQuota): readonly ScopeRequirement[] {
  const plain = (spec?.scopes ?? []).map((scopeName) => ({ scopeName, operator: 'Exists' }))
  return [...plain, ...(spec?.scopeSelector?.matchExpressions ?? [])]
}

function inScope({ scopeName, operator, values = [] }: ScopeRequirement, pod: Pod): boolean {
  switch (scopeName) {
    case 'Terminating':
      return isBounded(pod)
    case 'NotTerminating':
      return !isBounded(pod)
    case 'BestEffort':
      return isBestEffort(pod)
    case 'NotBestEffort':
      return !isBestEffort(pod)
    case 'CrossNamespacePodAffinity':
      return affinityTerms(pod).some(
        ({ namespaces = [], namespaceSelector }) => namespaces.length > 0 || namespaceSelector !== undefined,
      )
    case 'PriorityClass':
      return matchesOperator(pod.spec.priorityClassName ?? '', operator, values)
    default:
      return false
  }
}

function isBounded({ spec }: Pod): boolean {
  return (spec as { readonly activeDeadlineSeconds?: number }).activeDeadlineSeconds !== undefined
}

function isBestEffort({ spec }: Pod): boolean {
  return [...spec.containers, ...(spec.initContainers ?? []), spec].every(({ resources }) =>
    [resources?.requests, resources?.limits].every((list) => {
      const amounts = amountsOf(list)
      return (amounts.get('cpu') ?? 0n) === 0n && (amounts.get('memory') ?? 0n) === 0n
    }),
  )
}

function affinityTerms({ spec }: Pod): readonly PodAffinityTerm[] {
  const { podAffinity, podAntiAffinity } = spec.affinity ?? {}
  return [podAffinity, podAntiAffinity].flatMap((rules) => [
    ...(rules?.requiredDuringSchedulingIgnoredDuringExecution ?? []),
    ...(rules?.preferredDuringSchedulingIgnoredDuringExecution ?? []).map((each) => each.podAffinityTerm),
  ])
}

function matchesOperator(value: string, operator: string, values: readonly string[]): boolean {
  switch (operator) {
    case 'In':
      return values.includes(value)
    case 'NotIn':
      return value !== '' && !values.includes(value)
    case 'DoesNotExist':
      return value === ''
    default:
      return value !== ''
  }
}
