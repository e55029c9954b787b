/** What a pod takes from a node (scheduling.md 7.2). */
import { type Container, type PodSpec, parseResources, type ResourceList, type Resources } from '@tenon/api'

/** The sum of both, per resource. */
export function sum(a: Resources, b: Resources): Resources {
  const total: Record<string, number> = { ...a }
  for (const name in b) total[name] = (total[name] ?? 0) + (b[name] as number)
  return total
}

/** `a` less `b`; only resources of `a` are kept. */
export function difference(a: Resources, b: Resources): Resources {
  const rest: Record<string, number> = {}
  for (const name in a) rest[name] = (a[name] as number) - (b[name] ?? 0)
  return rest
}

/** The larger of both, per resource. */
export function larger(a: Resources, b: Resources): Resources {
  const most: Record<string, number> = { ...a }
  for (const name in b) most[name] = Math.max(most[name] ?? 0, b[name] as number)
  return most
}

/** Whether `total` holds `requests`; a negative amount anywhere in `total` refuses everything. */
export function fits(requests: Resources, total: Resources): boolean {
  for (const name in total) if ((total[name] as number) < 0) return false
  for (const name in requests) if ((requests[name] as number) > (total[name] ?? 0)) return false
  return true
}

const isRestartable = (container: Container) => container.restartPolicy === 'Always'
const requestsOf = (container: Container) => parseResources(container.resources?.requests)

/** Requests of one pod, with `pods: 1`: containers, init containers, sidecars, pod level, overhead. */
export function podRequests(spec: PodSpec): Resources {
  let running = spec.containers.map(requestsOf).reduce(sum, {})
  let sidecars: Resources = {}
  let starting: Resources = {}
  for (const container of spec.initContainers ?? []) {
    if (isRestartable(container)) sidecars = sum(sidecars, requestsOf(container))
    starting = larger(starting, isRestartable(container) ? sidecars : sum(sidecars, requestsOf(container)))
  }
  running = larger(sum(running, sidecars), starting)
  const whole = { ...running, ...podLevel(spec.resources?.requests) }
  return { ...sum(whole, parseResources(spec.overhead)), pods: 1 }
}

/** Pod-level requests replace the containers' for cpu, memory and huge pages. */
function podLevel(requests: ResourceList | undefined): Resources {
  return Object.fromEntries(
    Object.entries(parseResources(requests)).filter(([name]) => /^(cpu|memory|hugepages-.*)$/.test(name)),
  )
}

/** A template's spec as admission would complete it: limits stand in for missing requests. */
export function withRequestsFromLimits(spec: PodSpec): PodSpec {
  const complete = (container: Container): Container => ({
    ...container,
    resources: {
      ...container.resources,
      requests: { ...container.resources?.limits, ...container.resources?.requests },
    },
  })
  return {
    ...spec,
    containers: spec.containers.map(complete),
    ...(spec.initContainers && { initContainers: spec.initContainers.map(complete) }),
  }
}
