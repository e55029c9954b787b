/**
 * The resources allocated to the containers of a pod, which differ from its requests while an in-place resize is
 * pending.
 */
import type { Container, Pod, ResourceRequirements } from '@tenon/api'

/** Containers with their allocated resources. */
export type GivenContainers = Pick<Pod['spec'], 'containers' | 'initContainers'>

/** Whether the pod's status has allocated resources, as it does after the first in-place resize. */
export function isTold({ status }: Pick<Pod, 'status'>): boolean {
  return (status?.containerStatuses ?? []).some(({ resources }) => resources !== undefined)
}

/** The allocated resources of the containers: from the status, or else their requests. */
export function givenContainers(pod: Pod): GivenContainers {
  const { spec, status } = pod
  if (!isTold(pod)) return spec
  const statuses = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])]
  const of = (container: Container): Container => {
    const resources = statuses.find(({ name }) => name === container.name)?.resources
    return resources === undefined ? container : { ...container, resources }
  }
  const { containers, initContainers } = spec
  return { containers: containers.map(of), ...(initContainers && { initContainers: initContainers.map(of) }) }
}

/** The pod with requests equal to the allocated resources. */
export function podWith(
  { metadata, spec, ...pod }: Pod,
  { containers, initContainers }: GivenContainers,
): Pod {
  const { containerStatuses: _, initContainerStatuses: __, ...status } = pod.status ?? {}
  return {
    ...pod,
    metadata,
    spec: { ...spec, containers, ...(initContainers && { initContainers }) },
    status,
  }
}

/** Allocated resources by container name. */
export function allocationsOf({
  containers,
  initContainers = [],
}: GivenContainers): ReadonlyMap<string, ResourceRequirements> {
  return new Map([...containers, ...initContainers].map(({ name, resources = {} }) => [name, resources]))
}

/** Whether allocated and requested resources are equal. */
export function isGiven(given: GivenContainers, asked: GivenContainers): boolean {
  if (given.containers === asked.containers && given.initContainers === asked.initContainers) return true
  const text = ({ containers, initContainers = [] }: GivenContainers) =>
    JSON.stringify([...containers, ...initContainers].map(({ resources = {} }) => resources))
  return text(given) === text(asked)
}
