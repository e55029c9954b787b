/** What the containers of a pod have of their node, which is not what the pod asks for while a resize in place waits. */
import type { Container, Pod, ResourceRequirements } from '@tenon/api'

/** Containers with the resources that they have. */
export type GivenContainers = Pick<Pod['spec'], 'containers' | 'initContainers'>

/** Whether the pod's status tells what its containers have, as it does once the pod was resized in place. */
export function isTold({ status }: Pick<Pod, 'status'>): boolean {
  return (status?.containerStatuses ?? []).some(({ resources }) => resources !== undefined)
}

/** What the containers of a pod have: what its status tells, or else what it asks for. */
export function givenContainers(pod: Pod): GivenContainers {
  const { spec, status } = pod
  if (!isTold(pod)) return spec
  const told = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])]
  const of = (container: Container): Container => {
    const resources = told.find(({ name }) => name === container.name)?.resources
    return resources === undefined ? container : { ...container, resources }
  }
  const { containers, initContainers } = spec
  return { containers: containers.map(of), ...(initContainers && { initContainers: initContainers.map(of) }) }
}

/** The pod as one that asks for what these containers have, and has it. */
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

/** By name of the container what it has. */
export function allocationsOf({
  containers,
  initContainers = [],
}: GivenContainers): ReadonlyMap<string, ResourceRequirements> {
  return new Map([...containers, ...initContainers].map(({ name, resources = {} }) => [name, resources]))
}

/** Whether the containers have what they are asked to have. */
export function isGiven(given: GivenContainers, asked: GivenContainers): boolean {
  if (given.containers === asked.containers && given.initContainers === asked.initContainers) return true
  const text = ({ containers, initContainers = [] }: GivenContainers) =>
    JSON.stringify([...containers, ...initContainers].map(({ resources = {} }) => resources))
  return text(given) === text(asked)
}
