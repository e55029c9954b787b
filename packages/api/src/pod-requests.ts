import { larger, sum } from './amounts.ts'
import type { Resources } from './instance-types.ts'
import type { Container, ContainerStatus, Pod, PodSpec, ResourceList } from './objects.ts'
import { isResizeInfeasible } from './pod-resizes.ts'
import { parseResources } from './quantity.ts'

const isRestartable = (container: Container) => container.restartPolicy === 'Always'

/**
 * What one pod takes from a node (scheduling.md 7.2), with `pods: 1`: containers, init containers, sidecars, pod level, overhead.
 * With its status, a container that is being resized in place counts with the most it may hold.
 *
 * Fractions of a unit (of a thousandth of a core for `cpu`) round up per container, so a sum is never
 * too low and at most one unit per container too high.
 * @param assumed what a container counts for that asks for nothing of a resource.
 * @throws RangeError when a quantity is malformed; callers validate pods first.
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

/** All that the requests of a pod follow from, beside its containers and what kubelets say. */
type Rest = Pick<PodSpec, 'initContainers' | 'overhead' | 'resources'>

/** Works out something about the requests of pods, once for pods that share their containers, as cached ones of a workload do. */
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

/** What a well-formed pod takes from a node, worked out once for pods that share their containers. */
export const requestsOf: (pod: Pick<Pod, 'spec' | 'status'>) => Resources = perRequests(({ spec, status }) =>
  podRequests(spec, status),
)

/** Whether kubelets say what containers have, which may be something else than they ask for. */
function isResized(status: Pod['status']): boolean {
  const isTold = (statuses: unknown): boolean =>
    statuses !== undefined &&
    (!Array.isArray(statuses) ||
      statuses.some((each: ContainerStatus | null) => each?.resources !== undefined))
  return isTold(status?.containerStatuses) || isTold(status?.initContainerStatuses)
}
