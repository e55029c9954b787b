/** Extended resources that devices serve (devices.md 3.22). */
import type { DeviceClass, DeviceRequest } from './devices.ts'
import type { Container, ExtendedResourceClaimStatus, PodSpec } from './objects.ts'
import { ownValue } from './own.ts'
import { parseResource } from './quantity.ts'

/** Every DeviceClass serves the resource of this prefix and its name, from Kubernetes 1.35 on. */
const implicitPrefix = 'deviceclass.resource.kubernetes.io/'

/** Marks the ResourceClaim that kube-scheduler creates for the extended resources of a pod. */
export const extendedResourceClaimAnnotation = 'resource.kubernetes.io/extended-resource-claim'

/**
 * The name of the DeviceClass that serves each extended resource. Of several classes for one resource the newest does, of
 * equally old ones the one with the lowest name.
 * @param hasImplicitNames whether each class serves a resource by its own name, too.
 */
export function extendedResourceClasses(
  classes: readonly DeviceClass[],
  hasImplicitNames: boolean,
): ReadonlyMap<string, string> {
  const served = new Map<string, string>()
  for (const { metadata, spec } of classes.toSorted(newestFirst)) {
    const resource = spec.extendedResourceName ?? ''
    if (resource !== '' && !served.has(resource)) served.set(resource, metadata.name)
  }
  if (hasImplicitNames)
    for (const { metadata } of classes) served.set(`${implicitPrefix}${metadata.name}`, metadata.name)
  return served
}

function newestFirst({ metadata: a }: DeviceClass, { metadata: b }: DeviceClass): number {
  const [createdA, createdB] = [a.creationTimestamp ?? '', b.creationTimestamp ?? '']
  if (createdA !== createdB) return createdA > createdB ? -1 : 1
  return a.name < b.name ? -1 : 1
}

/** The requests of a claim for extended resources of a pod, and which of them each container uses. */
export interface ExtendedResourceRequests {
  readonly requests: readonly DeviceRequest[]
  readonly mappings: ExtendedResourceClaimStatus['requestMappings']
}

/** Devices for one resource of one container. */
interface ContainerShare {
  readonly request: string
  readonly count: number
}

/**
 * Devices for a pod's extended resources. Containers and sidecars have devices of their own. An ordinary init container
 * uses those of containers that start after it, and gets only what is missing.
 * @param classes the DeviceClass by resource, of the resources that devices serve on the node.
 * @throws RangeError if a quantity is malformed.
 */
export function extendedResourceRequests(
  spec: Pick<PodSpec, 'containers' | 'initContainers'>,
  classes: ReadonlyMap<string, string>,
): ExtendedResourceRequests {
  const init = spec.initContainers ?? []
  const containers = [...init, ...spec.containers]
  const requests: DeviceRequest[] = []
  const mappings: ExtendedResourceClaimStatus['requestMappings'][number][] = []
  // By resource: what later containers have, those that start first in front.
  const later = new Map<string, readonly ContainerShare[]>()
  for (const [at, container] of [...containers.entries()].toReversed()) {
    const isOrdinaryInit = at < init.length && container.restartPolicy !== 'Always'
    for (const { resource, count, name } of askedOf(container, at).toReversed()) {
      const deviceClassName = classes.get(resource)
      if (deviceClassName === undefined) continue
      const others = later.get(resource) ?? []
      const reused = isOrdinaryInit ? sharesFor(count, others) : []
      const missing = count - reused.reduce((sum, share) => sum + share.count, 0)
      const own = missing > 0 ? [{ request: name, count: missing }] : []
      if (missing > 0)
        requests.unshift({ name, exactly: { deviceClassName, allocationMode: 'ExactCount', count: missing } })
      later.set(resource, [...own, ...others])
      mappings.unshift(
        ...[...own, ...reused].map(({ request }) => ({
          containerName: container.name,
          resourceName: resource,
          requestName: request,
        })),
      )
    }
  }
  return { requests, mappings }
}

function askedOf(
  { resources }: Container,
  at: number,
): readonly { readonly resource: string; readonly count: number; readonly name: string }[] {
  return Object.keys(resources?.requests ?? {})
    .toSorted()
    .map((resource, index) => ({
      resource,
      count: parseResource(resource, ownValue(resources?.requests, resource) ?? '0'),
      name: `container-${at}-request-${index}`,
    }))
    .filter(({ count }) => count > 0)
}

/** The first of the shares that together have `count` devices, or all of them. */
function sharesFor(count: number, shares: readonly ContainerShare[]): readonly ContainerShare[] {
  const chosen: ContainerShare[] = []
  let left = count
  for (const share of shares) {
    if (left <= 0) break
    chosen.push(share)
    left -= share.count
  }
  return chosen
}
