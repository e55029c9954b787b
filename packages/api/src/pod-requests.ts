import { larger, sum } from './amounts.ts'
import type { Resources } from './instance-types.ts'
import type { Container, ContainerStatus, Pod, PodSpec, ResourceList } from './objects.ts'
import { isResizeInfeasible } from './pod-resizes.ts'
import { parseResources } from './quantity.ts'

const isRestartable = (container: Container) => container.restartPolicy === 'Always'

/**
 * What one pod takes from a node (scheduling.md 7.2), with `pods: 1`: containers, init containers, sidecars,
 * pod level, overhead. If the status is given, a container that is being resized in place counts with the
 * largest amount that it may have.
 *
 * Fractions of a unit (of a millicore for `cpu`) round up per container, so a sum is never too low and at most
 * one unit per container too high.
 * @param assumed what a container counts for that does not request a resource.
 * @throws RangeError if a quantity is malformed; callers validate pods first.
 */
export function podRequests(spec: PodSpec, status?: Pod['status'], assumed?: Resources): Resources {
  const infeasible = isResizeInfeasible(status)
  const held = (container: Container, statuses?: readonly ContainerStatus[]) => {
    const known = statuses?.find(({ name }) => name === container.name)
    const amounts = heldBy(container, known, infeasible)
    return assumed === undefined ? amounts : { ...assumed, ...amounts }
  }
  let running: Resources = {}
  for (const container of spec.containers) running = sum(running, held(container, status?.containerStatuses))
  let sidecars: Resources = {}
  let starting: Resources = {}
  for (const container of spec.initContainers ?? []) {
    if (isRestartable(container)) {
      sidecars = sum(sidecars, held(container, status?.initContainerStatuses))
      starting = larger(starting, sidecars)
    } else starting = larger(starting, sum(sidecars, held(container)))
  }
  running = larger(sum(running, sidecars), starting)
  const whole = { ...running, ...podLevel(spec.resources?.requests) }
  return { ...sum(whole, parseResources(spec.overhead)), pods: 1 }
}

/** During a resize: the maximum of requested, actual and allocated resources. */
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

/** Pod-level requests replace those of the containers for cpu, memory and huge pages. */
function podLevel(requests: ResourceList | undefined): Resources {
  return Object.fromEntries(
    Object.entries(parseResources(requests)).filter(([name]) => /^(cpu|memory|hugepages-.*)$/.test(name)),
  )
}

/** Everything besides the containers that requests depend on. */
type Rest = Pick<PodSpec, 'initContainers' | 'overhead' | 'resources'>

/**
 * Memoizes a function of pod requests, for pods that share one list of containers, as cached pods of a workload
 * do.
 */
export function perRequests<T>(of: (pod: Pick<Pod, 'spec' | 'status'>) => T): typeof of {
  const results = new WeakMap<readonly Container[], { readonly rest: Rest; readonly result: T }>()
  return (pod) => {
    const { spec, status } = pod
    if (isResized(status)) return of(pod)
    const known = results.get(spec.containers)
    const isSame =
      known?.rest.initContainers === spec.initContainers &&
      known?.rest.overhead === spec.overhead &&
      known?.rest.resources === spec.resources
    if (known !== undefined && isSame) return known.result
    const result = of({ spec })
    const { initContainers, overhead, resources } = spec
    const rest = {
      ...(initContainers !== undefined && { initContainers }),
      ...(overhead !== undefined && { overhead }),
      ...(resources !== undefined && { resources }),
    }
    results.set(spec.containers, { rest, result })
    return result
  }
}

/** The requests of a valid pod, memoized for pods that share their containers. */
export const requestsOf: (pod: Pick<Pod, 'spec' | 'status'>) => Resources = perRequests(({ spec, status }) =>
  podRequests(spec, status),
)

/** Whether the kubelet reports resources of containers, which may differ from the spec. */
function isResized(status: Pod['status']): boolean {
  const isReported = (statuses: unknown): boolean =>
    statuses !== undefined &&
    (!Array.isArray(statuses) ||
      statuses.some((each: ContainerStatus | null) => each?.resources !== undefined))
  return isReported(status?.containerStatuses) || isReported(status?.initContainerStatuses)
}
