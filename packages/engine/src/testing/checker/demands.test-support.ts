/** What pods take from a node: resources and host ports. */
import { type Container, parseResources, type Pod, type PodSpec, type Resources } from '@tenon/api'
import type { SchedulingInput } from '../../input/input.ts'

/** Amounts of both together. */
export function plus(a: Resources, b: Resources): Resources {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return Object.fromEntries(names.map((name) => [name, (a[name] ?? 0) + (b[name] ?? 0)]))
}

/** The larger amount of either. */
export function most(a: Resources, b: Resources): Resources {
  const names = [...new Set([...Object.keys(a), ...Object.keys(b)])]
  return Object.fromEntries(names.map((name) => [name, Math.max(a[name] ?? 0, b[name] ?? 0)]))
}

/** The sum over all. */
export function total(all: readonly Resources[]): Resources {
  return all.reduce(plus, {})
}

/** Names of the resources of which more is asked than there is. */
export function lacking(wanted: Resources, there: Resources): readonly string[] {
  return Object.keys(wanted).filter((name) => (wanted[name] ?? 0) > (there[name] ?? 0))
}

const requestsOf = (container: Container): Resources => parseResources(container.resources?.requests)

/**
 * Requests of a pod: what its containers and sidecars take while it runs, or more if it takes more at
 * some moment of its start; pod-level figures replace the sum; the runtime's overhead comes on top.
 */
export function demandOf(spec: PodSpec): Resources {
  const inits = spec.initContainers ?? []
  const isSidecar = (container: Container) => container.restartPolicy === 'Always'
  const running = total([...spec.containers, ...inits.filter(isSidecar)].map(requestsOf))
  const moments = inits.map((container, index) =>
    plus(requestsOf(container), total(inits.slice(0, index).filter(isSidecar).map(requestsOf))),
  )
  const containers = moments.reduce(most, running)
  const podLevel = Object.entries(parseResources(spec.resources?.requests)).filter(
    ([name]) => name === 'cpu' || name === 'memory' || name.startsWith('hugepages-'),
  )
  const whole = { ...containers, ...Object.fromEntries(podLevel) }
  return { ...plus(whole, parseResources(spec.overhead)), pods: 1 }
}

/** Requests of all pods together. */
export function demandOfAll(pods: readonly Pod[]): Resources {
  return total(pods.map((pod) => demandOf(pod.spec)))
}

/** A port a pod takes on its node. */
export interface Port {
  readonly ip: string
  readonly port: number
  readonly protocol: string
}

/** Host ports of a pod's containers and sidecars. */
export function portsOf(spec: PodSpec): readonly Port[] {
  const ofHost = spec.hostNetwork === true
  const sidecars = (spec.initContainers ?? []).filter((container) => container.restartPolicy === 'Always')
  return [...spec.containers, ...sidecars]
    .flatMap((container) => container.ports ?? [])
    .map((port) => (ofHost && (port.hostPort ?? 0) === 0 ? { ...port, hostPort: port.containerPort } : port))
    .filter((port) => (port.hostPort ?? 0) !== 0)
    .map(({ hostPort = 0, hostIP = '', protocol = 'TCP' }) => ({ ip: hostIP, port: hostPort, protocol }))
}

const isEveryAddress = (ip: string) => ip === '' || ip === '0.0.0.0' || ip === '::'

/** Whether two lists of ports cannot be taken on one node. */
export function clash(a: readonly Port[], b: readonly Port[]): boolean {
  return a.some((one) =>
    b.some(
      (other) =>
        one.port === other.port &&
        one.protocol === other.protocol &&
        (one.ip === other.ip || isEveryAddress(one.ip) || isEveryAddress(other.ip)),
    ),
  )
}

/** Whether ports clash between any two of the lists. */
export function clashAmong(lists: readonly (readonly Port[])[]): boolean {
  return lists.some((list, index) => lists.slice(index + 1).some((other) => clash(list, other)))
}

/** Claims for one pod alone that these pods use, as often as they do. */
export function exclusiveClaimsOf(pods: readonly Pod[], input: SchedulingInput): readonly string[] {
  return pods.flatMap((pod) => input.volumes?.get(pod.metadata.uid ?? '')?.exclusive ?? [])
}
