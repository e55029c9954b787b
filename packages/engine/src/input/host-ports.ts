/** Host ports of pods (scheduling.md 7.3, cluster-state.md 3.4). */
import type { ContainerPort, PodSpec } from '@tenon/api'

export interface HostPort {
  readonly ip: string
  readonly port: number
  readonly protocol: string
}

/**
 * The host ports of a pod and its sidecars; without hostIP a port counts for every address. With `hostNetwork` every
 * containerPort is a host port: the API server sets that in pods, but not in templates.
 */
export function hostPortsOf(spec: PodSpec): readonly HostPort[] {
  const sidecars = (spec.initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')
  return [...spec.containers, ...sidecars].flatMap(({ ports }) =>
    (ports ?? []).flatMap((port) => {
      const number = hostPortOf(port, spec)
      if (number === 0) return []
      const { hostIP, protocol } = port
      return [
        {
          ip: hostIP === undefined || hostIP === '' ? '0.0.0.0' : hostIP,
          port: number,
          protocol: protocol ?? 'TCP',
        },
      ]
    }),
  )
}

/** The host port of a container port; 0 if it has none. */
export function hostPortOf(
  { hostPort, containerPort }: ContainerPort,
  { hostNetwork }: Pick<PodSpec, 'hostNetwork'>,
): number {
  return hostPort || (hostNetwork === true ? containerPort : 0)
}

const isUnspecified = (ip: string) => ip === '0.0.0.0' || ip === '::'

/** Whether `used` takes any of `wanted`. Grows with the sum of both, as a pod may ask for thousands. */
export function portsClash(wanted: readonly HostPort[], used: readonly HostPort[]): boolean {
  const numbers = new Set(wanted.map(({ port }) => port))
  const near = used.filter(({ port }) => numbers.has(port))
  if (near.length === 0) return false
  const socket = ({ port, protocol }: HostPort) => `${protocol}/${port}`
  const address = (port: HostPort) => `${socket(port)}/${isUnspecified(port.ip) ? '*' : port.ip}`
  const taken = new Set(near.flatMap((port) => [socket(port), address(port)]))
  return wanted.some((port) =>
    isUnspecified(port.ip)
      ? taken.has(socket(port))
      : taken.has(address(port)) || taken.has(`${socket(port)}/*`),
  )
}
