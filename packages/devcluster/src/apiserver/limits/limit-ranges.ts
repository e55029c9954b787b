import {
  type Container,
  containerDefaults,
  type LimitRange,
  type LimitRangeItem,
  type PersistentVolumeClaim,
  type Pod,
  quantityNanos,
  type ResourceList,
  withContainerDefaults,
} from '@tenon/api'
import { namespacePrefix } from '../../storage/index.ts'
import type { StoredObject } from '../../contract.ts'
import type { ServerContext } from '../context.ts'
import type { Served } from '../kinds/registry.ts'
import { forbidden } from '../http/status.ts'
import { type Amounts, amountsOf, amountText, podAmounts } from './amounts.ts'

const annotation = 'kubernetes.io/limit-ranger'

/** The items of a namespace's LimitRanges, by name of the LimitRange. */
function itemsOf(ctx: ServerContext, namespace: string): readonly LimitRangeItem[] {
  const items: LimitRangeItem[] = []
  ctx.store.collection('limitranges').scan({ prefix: namespacePrefix(namespace) }, (object) => {
    items.push(...((object as unknown as LimitRange).spec?.limits ?? []))
    return true
  })
  return items
}

/** Sets missing requests and limits of containers, and notes that in an annotation. */
export function withLimitRangeDefaults(ctx: ServerContext, pod: Pod): Pod {
  const defaults = containerDefaults(itemsOf(ctx, pod.metadata.namespace ?? ''))
  const { requests, limits } = defaults
  if (Object.keys(requests).length === 0 && Object.keys(limits).length === 0) return pod
  const notes: string[] = []
  const missing = (given: ResourceList, stated: ResourceList | undefined) =>
    Object.keys(given)
      .filter((name) => !Object.hasOwn(stated ?? {}, name))
      .sort()
  const note = ({ name, resources }: Container, what: string) => {
    const noRequest = missing(requests, resources?.requests)
    const noLimit = missing(limits, resources?.limits)
    if (noRequest.length > 0) notes.push(`${noRequest.join(', ')} request for ${what} ${name}`)
    if (noLimit.length > 0) notes.push(`${noLimit.join(', ')} limit for ${what} ${name}`)
  }
  for (const each of pod.spec.containers) note(each, 'container')
  for (const each of pod.spec.initContainers ?? []) note(each, 'init container')
  if (notes.length === 0) return pod
  const annotations = {
    ...pod.metadata.annotations,
    [annotation]: `LimitRanger plugin set: ${notes.join('; ')}`,
  }
  return {
    ...pod,
    metadata: { ...pod.metadata, annotations },
    spec: withContainerDefaults(pod.spec, defaults),
  }
}

/**
 * Refuses a pod or claim outside the bounds of its namespace.
 * @throws ApiError 403.
 */
export function checkLimitRanges(ctx: ServerContext, served: Served, object: StoredObject): void {
  if (served.collection !== 'pods' && served.collection !== 'persistentvolumeclaims') return
  const items = itemsOf(ctx, object.metadata.namespace ?? '')
  if (items.length === 0) return
  const problems =
    served.collection === 'pods'
      ? podProblems(items, object as unknown as Pod)
      : claimProblems(items, object as unknown as PersistentVolumeClaim)
  const [first] = problems
  if (first === undefined) return
  const why = problems.length === 1 ? first : `[${problems.join(', ')}]`
  throw forbidden(served.definition, object.metadata.name, why)
}

interface Measured {
  readonly requests: Amounts
  readonly limits: Amounts
}

function podProblems(items: readonly LimitRangeItem[], { spec }: Pod): readonly string[] {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])]
  return items.flatMap((item) => {
    if (item.type === 'Container')
      return containers.flatMap(({ resources }) =>
        boundProblems(item, {
          requests: amountsOf(resources?.requests),
          limits: amountsOf(resources?.limits),
        }),
      )
    if (item.type !== 'Pod') return []
    return boundProblems(item, {
      requests: podAmounts(spec, 'requests'),
      limits: podAmounts(spec, 'limits'),
    })
  })
}

function claimProblems(items: readonly LimitRangeItem[], { spec }: PersistentVolumeClaim): readonly string[] {
  const requests = amountsOf(spec.resources?.requests)
  return items.flatMap(({ type, min, max }) => {
    if (type !== 'PersistentVolumeClaim') return []
    return [
      ...entries(min).flatMap(([name, bound]) => below(type, name, bound, requests, new Map())),
      ...entries(max).flatMap(([name, bound]) => {
        const request = requests.get(name)
        const rule = `maximum ${name} usage per ${type} is ${bound}`
        if (request === undefined) return [`${rule}.  No request is specified`]
        return request > nanos(bound) ? [`${rule}, but request is ${amountText(name, request)}`] : []
      }),
    ]
  })
}

function boundProblems(item: LimitRangeItem, measured: Measured): readonly string[] {
  const { requests, limits } = measured
  return [
    ...entries(item.min).flatMap(([name, bound]) => below(item.type, name, bound, requests, limits)),
    ...entries(item.max).flatMap(([name, bound]) => above(item.type, name, bound, measured)),
    ...entries(item.maxLimitRequestRatio).flatMap(([name, bound]) =>
      stretched(item.type, name, bound, measured),
    ),
  ]
}

function entries(list: ResourceList | undefined): readonly [string, string][] {
  return Object.entries(list ?? {}).sort(([a], [b]) => (a < b ? -1 : 1))
}

function nanos(quantity: string): bigint {
  return quantityNanos(quantity) ?? 0n
}

function below(type: string, name: string, bound: string, requests: Amounts, limits: Amounts): string[] {
  const rule = `minimum ${name} usage per ${type} is ${bound}`
  const request = requests.get(name)
  const limit = limits.get(name)
  if (request === undefined) return [`${rule}.  No request is specified`]
  if (request < nanos(bound)) return [`${rule}, but request is ${amountText(name, request)}`]
  if (limit !== undefined && limit < nanos(bound)) return [`${rule}, but limit is ${amountText(name, limit)}`]
  return []
}

function above(type: string, name: string, bound: string, { requests, limits }: Measured): string[] {
  const rule = `maximum ${name} usage per ${type} is ${bound}`
  const request = requests.get(name)
  const limit = limits.get(name)
  if (limit === undefined) return [`${rule}.  No limit is specified`]
  if (limit > nanos(bound)) return [`${rule}, but limit is ${amountText(name, limit)}`]
  if (request !== undefined && request > nanos(bound))
    return [`${rule}, but request is ${amountText(name, request)}`]
  return []
}

function stretched(type: string, name: string, bound: string, { requests, limits }: Measured): string[] {
  const rule = `${name} max limit to request ratio per ${type} is ${bound}`
  const request = requests.get(name) ?? 0n
  const limit = limits.get(name) ?? 0n
  if (request === 0n) return [`${rule}, but no request is specified or request is 0`]
  if (limit === 0n) return [`${rule}, but no limit is specified or limit is 0`]
  const ratio = Number(limit) / Number(request)
  return ratio > Number(nanos(bound)) / 1e9 ? [`${rule}, but provided ratio is ${ratio.toFixed(6)}`] : []
}
