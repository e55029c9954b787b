import { larger, sum } from './amounts.ts'
import type { Resources } from './instance-types.ts'
import type {
  Container,
  ContainerStatus,
  Pod,
  PodSpec,
  PodStatus,
  ResourceList,
  ResourceRequirements,
} from './objects.ts'
import { ownValue } from './own.ts'
import { isResizeInfeasible } from './pod-resizes.ts'
import { parseResources } from './quantity.ts'

const isRestartable = (container: Container) => container.restartPolicy === 'Always'

/**
 * How kube-scheduler counts a pod that is resized in place (docs/design/0012): `sumOfMaxima` adds up the largest
 * amount that each container may have; `maximumOfSums` takes the largest of what all containers ask for together, what
 * they were promised and what they have.
 */
export type ResizedRequests = 'sumOfMaxima' | 'maximumOfSums'

/**
 * What one pod takes from a node (scheduling.md 7.2), with `pods: 1`: containers, init containers, sidecars,
 * pod level, overhead. If the status is given, a pod that is being resized in place counts with the largest amount that
 * it may have.
 *
 * Fractions of a unit (of a millicore for `cpu`) round up per container, so a sum is never too low and at most
 * one unit per container too high.
 * @param resized how a pod counts that is resized in place.
 * @param assumed what a container counts for that does not request a resource.
 * @throws RangeError if a quantity is malformed; callers validate pods first.
 */
export function podRequests(
  spec: PodSpec,
  status?: Pod['status'],
  resized: ResizedRequests = 'sumOfMaxima',
  assumed?: Resources,
): Resources {
  const whole =
    resized === 'maximumOfSums' && isResized(status)
      ? maximumOfSums(spec, status, assumed)
      : sumOfMaxima(spec, status, assumed)
  return { ...sum(whole, parseResources(spec.overhead)), pods: 1 }
}

function sumOfMaxima(spec: PodSpec, status: Pod['status'], assumed: Resources | undefined): Resources {
  const isInfeasible = isResizeInfeasible(status)
  const statuses = statusesByName(status)
  const ofContainer = (container: Container, isOrdinaryInit: boolean) =>
    heldBy(container.resources, isOrdinaryInit ? undefined : statuses.get(container.name), isInfeasible)
  const asked = onlyPodLevel(parseResources(spec.resources?.requests))
  const held = heldBy(spec.resources, status, isInfeasible)
  const podLevel = Object.fromEntries(Object.keys(asked).map((name) => [name, ownValue(held, name) ?? 0]))
  return total(spec, ofContainer, podLevel, assumed)
}

function maximumOfSums(spec: PodSpec, status: PodStatus, assumed: Resources | undefined): Resources {
  const statuses = statusesByName(status)
  const podRequested = spec.resources?.requests
  const isFilled = hasEntries(status.resources?.requests) && hasEntries(status.allocatedResources)
  const isInfeasible = isResizeInfeasible(status)
  const sumOf = (
    of: (status: Holding | undefined) => ResourceList | undefined,
    podLevel: ResourceList | undefined,
  ) =>
    total(
      spec,
      // What the kubelet does not say counts as requested, but not while it refuses the request.
      ({ name, resources }) =>
        parseResources(of(statuses.get(name)) ?? (isInfeasible ? undefined : resources?.requests)),
      onlyPodLevel(parseResources(podLevel)),
      assumed,
    )
  const actual = sumOf(
    (known) => known?.resources?.requests ?? known?.allocatedResources,
    isFilled ? status.resources?.requests : podRequested,
  )
  const allocated = sumOf(
    (known) => known?.allocatedResources,
    isFilled ? status.allocatedResources : podRequested,
  )
  const granted = larger(actual, allocated)
  return isInfeasible
    ? granted
    : larger(
        granted,
        sumOf(() => undefined, podRequested),
      )
}

/** What the containers take together; amounts of the pod level replace theirs. */
function total(
  spec: PodSpec,
  ofContainer: (container: Container, isOrdinaryInit: boolean) => Resources,
  podLevel: Resources,
  assumed: Resources | undefined,
): Resources {
  const amountsOf = (container: Container, isOrdinaryInit: boolean) => {
    const amounts = ofContainer(container, isOrdinaryInit)
    return assumed === undefined ? amounts : { ...assumed, ...amounts }
  }
  let running: Resources = {}
  for (const container of spec.containers) running = sum(running, amountsOf(container, false))
  let sidecars: Resources = {}
  let starting: Resources = {}
  for (const container of spec.initContainers ?? []) {
    if (isRestartable(container)) {
      sidecars = sum(sidecars, amountsOf(container, false))
      starting = larger(starting, sidecars)
    } else starting = larger(starting, sum(sidecars, amountsOf(container, true)))
  }
  return { ...larger(sum(running, sidecars), starting), ...podLevel }
}

/** What the kubelet reports of a container, or of a pod as a whole. */
type Holding = Pick<ContainerStatus, 'resources' | 'allocatedResources'>

/** During a resize: the maximum of requested, actual and allocated resources. */
function heldBy(
  resources: ResourceRequirements | undefined,
  status: Holding | undefined,
  isInfeasible: boolean,
): Resources {
  const asked = parseResources(resources?.requests)
  if (status?.resources === undefined) return asked
  const granted = larger(parseResources(status.resources.requests), parseResources(status.allocatedResources))
  return isInfeasible ? granted : larger(asked, granted)
}

function statusesByName(status: Pod['status']): ReadonlyMap<string, ContainerStatus> {
  return new Map(
    [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])].map((each) => [
      each.name,
      each,
    ]),
  )
}

const hasEntries = (list: ResourceList | undefined) => Object.keys(list ?? {}).length > 0

/** The amounts that a pod may ask for as a whole: cpu, memory and huge pages. */
function onlyPodLevel(requests: Resources): Resources {
  return Object.fromEntries(
    Object.entries(requests).filter(([name]) => /^(cpu|memory|hugepages-.*)$/.test(name)),
  )
}

/** Everything besides the containers that requests depend on. */
type Rest = Pick<PodSpec, 'initContainers' | 'overhead' | 'resources'>

/**
 * Memoizes a function of pod requests, for pods that share one list of containers, as cached pods of a workload
 * do.
 */
export function perRequests<T>(
  of: (pod: Pick<Pod, 'spec' | 'status'>, resized?: ResizedRequests) => T,
): typeof of {
  const results = new WeakMap<readonly Container[], { readonly rest: Rest; readonly result: T }>()
  return (pod, resized) => {
    const { spec, status } = pod
    if (isResized(status)) return of(pod, resized)
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
export const requestsOf: (pod: Pick<Pod, 'spec' | 'status'>, resized?: ResizedRequests) => Resources =
  perRequests(({ spec, status }, resized) => podRequests(spec, status, resized))

/** Whether the kubelet reports resources of the pod or of containers, which may differ from the spec. */
function isResized(status: Pod['status']): status is PodStatus {
  const isReported = (statuses: unknown): boolean =>
    statuses !== undefined &&
    (!Array.isArray(statuses) ||
      statuses.some(
        (each: ContainerStatus | null) => (each?.resources ?? each?.allocatedResources) !== undefined,
      ))
  if (status?.resources !== undefined) return true
  return isReported(status?.containerStatuses) || isReported(status?.initContainerStatuses)
}
