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

/** Whether `used` takes any of `wanted`. */
export function portsClash(wanted: readonly HostPort[], used: readonly HostPort[]): boolean {
  return wanted.some((a) =>
    used.some(
      (b) =>
        a.port === b.port &&
        a.protocol === b.protocol &&
        (a.ip === b.ip || isUnspecified(a.ip) || isUnspecified(b.ip)),
    ),
  )
}
