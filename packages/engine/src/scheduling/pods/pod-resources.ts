/** What a pod takes from a node (scheduling.md 7.2). */
import {
  type Container,
  type ContainerStatus,
  isResizeInfeasible,
  type Pod,
  type PodSpec,
  parseResources,
  type ResourceList,
  type Resources,
  ownValue,
  setOwn,
} from '@tenon/api'

/** The sum of both, per resource. */
export function sum(a: Resources, b: Resources): Resources {
  const total: Record<string, number> = { ...a }
  accumulate(total, b)
  return total
}

/** Adds to a total of one's own: for sums of many, each of which would be an object. */
export function accumulate(total: Record<string, number>, more: Resources): void {
  for (const name in more)
    setOwn(total, name, (ownValue(total, name) ?? 0) + (ownValue(more, name) as number))
}

/** `a` less `b`; only resources of `a` are kept. */
export function difference(a: Resources, b: Resources): Resources {
  const rest: Record<string, number> = {}
  for (const name in a) setOwn(rest, name, (ownValue(a, name) as number) - (ownValue(b, name) ?? 0))
  return rest
}

/** The larger of both, per resource. */
export function larger(a: Resources, b: Resources): Resources {
  const most: Record<string, number> = { ...a }
  for (const name in b) setOwn(most, name, Math.max(ownValue(most, name) ?? 0, ownValue(b, name) as number))
  return most
}

/** Whether `total` holds `requests`; a negative amount anywhere in `total` refuses everything. */
export function fits(requests: Resources, total: Resources): boolean {
  for (const name in total) if ((ownValue(total, name) as number) < 0) return false
  for (const name in requests)
    if ((ownValue(requests, name) as number) > (ownValue(total, name) ?? 0)) return false
  return true
}

const isRestartable = (container: Container) => container.restartPolicy === 'Always'

/**
 * Requests of one pod, with `pods: 1`: containers, init containers, sidecars, pod level, overhead.
 * With its status, a container that is being resized in place counts with the most it may hold.
 *
 * Fractions of a unit (of a thousandth of a core for `cpu`) round up per container, so a sum is never
 * too low and at most one unit per container too high.
 * @throws RangeError when a quantity is malformed; callers validate pods first.
 */
export function podRequests(spec: PodSpec, status?: Pod['status']): Resources {
  const infeasible = isResizeInfeasible(status)
  const held = (container: Container, statuses: readonly ContainerStatus[] | undefined) =>
    heldBy(
      container,
      statuses?.find(({ name }) => name === container.name),
      infeasible,
    )
  let running: Resources = {}
  for (const container of spec.containers) running = sum(running, held(container, status?.containerStatuses))
  let sidecars: Resources = {}
  let starting: Resources = {}
  for (const container of spec.initContainers ?? []) {
    if (isRestartable(container)) {
      sidecars = sum(sidecars, held(container, status?.initContainerStatuses))
      starting = larger(starting, sidecars)
    } else starting = larger(starting, sum(sidecars, parseResources(container.resources?.requests)))
  }
  running = larger(sum(running, sidecars), starting)
  const whole = { ...running, ...podLevel(spec.resources?.requests) }
  return { ...sum(whole, parseResources(spec.overhead)), pods: 1 }
}

/** What a container holds: during a resize the most of what it asks for, has, and was promised. */
function heldBy(
  { resources }: Container,
  status: ContainerStatus | undefined,
  resizeInfeasible: boolean,
): Resources {
  const asked = parseResources(resources?.requests)
  if (status?.resources === undefined) return asked
  const granted = larger(parseResources(status.resources.requests), parseResources(status.allocatedResources))
  return resizeInfeasible ? granted : larger(asked, granted)
}

/** Pod-level requests replace the containers' for cpu, memory and huge pages. */
function podLevel(requests: ResourceList | undefined): Resources {
  return Object.fromEntries(
    Object.entries(parseResources(requests)).filter(([name]) => /^(cpu|memory|hugepages-.*)$/.test(name)),
  )
}
