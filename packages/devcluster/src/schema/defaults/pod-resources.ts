import { ownValue, quantityNanos, quantityText } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { each, fill, set, within } from './fill.ts'

type Amounts = Readonly<Record<string, string>>

/** For containers of pods (not of templates), missing requests are set to the limits. */
function containerRequests(container: Loose): Loose {
  return within(container, 'resources', (resources) => {
    const limits: Loose | undefined = resources['limits']
    return limits === undefined
      ? resources
      : set(resources, 'requests', fill(resources['requests'] ?? {}, limits))
  })
}

/**
 * The requests of a pod: of each container from its limits, and of the pod from its limits and containers.
 */
export function podResourceDefaults(spec: Loose): Loose {
  const filled = each(each(spec, 'containers', containerRequests), 'initContainers', containerRequests)
  if (filled['resources'] === undefined) return filled
  return within(filled, 'resources', (resources) => podRequests(filled, podLimits(filled, resources)))
}

const isHugePages = (name: string): boolean => name.startsWith('hugepages-')

/** The limits of containers on huge pages are those of the pod, unless it has its own. */
function podLimits(spec: Loose, resources: Loose): Loose {
  const [limits = {}, requests = {}] = [resources['limits'], resources['requests']] as readonly Loose[]
  if (Object.keys(limits).length === 0 && Object.keys(requests).length === 0) return resources
  const pages = Object.entries(containerAmounts(spec, 'limits')).filter(
    ([name]) => isHugePages(name) && !Object.hasOwn(requests, name),
  )
  return pages.length === 0 ? resources : { ...resources, limits: fill(limits, Object.fromEntries(pages)) }
}

/** The total requests of the containers, or else the pod's limit. */
function podRequests(spec: Loose, resources: Loose): Loose {
  const limits: Amounts = resources['limits'] ?? {}
  if (Object.keys(limits).length === 0) return resources
  const isShared = (name: string): boolean => name === 'cpu' || name === 'memory'
  const summed = Object.entries(containerAmounts(spec, 'requests')).filter(([name]) => isShared(name))
  const bounds = Object.entries(limits).filter(([name]) => isShared(name) || isHugePages(name))
  const requests = fill(
    fill(resources['requests'] ?? {}, Object.fromEntries(summed)),
    Object.fromEntries(bounds),
  )
  return Object.keys(requests).length === 0 ? resources : set(resources, 'requests', requests)
}

/**
 * The maximum that the containers need at the same time: all regular ones, or an init container with the sidecars
 * started before it.
 */
export function containerAmounts(spec: Loose, list: 'requests' | 'limits'): Amounts {
  const own = (container: Loose): Amounts => container['resources']?.[list] ?? {}
  let running = (spec['containers'] as readonly Loose[] | undefined)?.map(own).reduce(sum, {}) ?? {}
  let sidecars: Amounts = {}
  let initialising: Amounts = {}
  for (const container of (spec['initContainers'] as readonly Loose[] | undefined) ?? []) {
    const together = sum(sidecars, own(container))
    initialising = greatest(initialising, together)
    if (container['restartPolicy'] !== 'Always') continue
    running = sum(running, own(container))
    sidecars = together
  }
  return greatest(running, initialising)
}

const nanosOf = (amounts: Amounts, name: string): bigint =>
  quantityNanos(ownValue(amounts, name) ?? '0') ?? 0n

/** Keeps the unit of the first amount that is not zero. */
function sum(a: Amounts, b: Amounts): Amounts {
  const total: [string, string][] = [...new Set([...Object.keys(a), ...Object.keys(b)])].map((name) => {
    const first = nanosOf(a, name) === 0n ? ownValue(b, name) : ownValue(a, name)
    const units = first?.endsWith('i') === true ? 'binary' : 'decimal'
    return [name, quantityText(nanosOf(a, name) + nanosOf(b, name), units)]
  })
  return Object.fromEntries(total)
}

function greatest(a: Amounts, b: Amounts): Amounts {
  const more = Object.entries(b).filter(
    ([name]) => nanosOf(b, name) > nanosOf(a, name) || !Object.hasOwn(a, name),
  )
  return more.length === 0 ? a : { ...a, ...Object.fromEntries(more) }
}

/** QoS class, from requests and limits of CPU and memory of the pod or its containers. */
export function qosClass(spec: Loose): string {
  const containers: readonly Loose[] = [...(spec['containers'] ?? []), ...(spec['initContainers'] ?? [])]
  const owners: readonly Loose[] = spec['resources'] === undefined ? containers : [spec]
  const positive = (amounts: Amounts | undefined): Amounts =>
    Object.fromEntries(
      Object.entries(amounts ?? {}).filter(
        ([name, amount]) => (name === 'cpu' || name === 'memory') && (quantityNanos(amount) ?? 0n) > 0n,
      ),
    )
  const limits = owners.map(({ resources }) => positive(resources?.limits))
  const [requested, limited] = [owners.map(({ resources }) => positive(resources?.requests)), limits].map(
    (all) => all.reduce(sum, {}),
  )
  if (Object.keys(requested ?? {}).length === 0 && Object.keys(limited ?? {}).length === 0)
    return 'BestEffort'
  const isEqual = ['cpu', 'memory'].every(
    (name) => nanosOf(requested ?? {}, name) === nanosOf(limited ?? {}, name),
  )
  const areLimited = limits.every((own) => Object.keys(own).length === 2)
  return areLimited && isEqual ? 'Guaranteed' : 'Burstable'
}
