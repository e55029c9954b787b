/** Ports that pods claim on their node (scheduling.md 7.3, cluster-state.md 3.4). */
import type { ContainerPort, PodSpec } from '@tenon/api'

export interface HostPort {
  readonly ip: string
  readonly port: number
  readonly protocol: string
}

/**
 * Host ports of a pod, those of its sidecars among them; an absent address means every address. With
 * `hostNetwork` every containerPort is a host port, as the API server sets it in pods, but not in templates.
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

/** The port of the node that a container port takes in a pod of this spec; 0 when it takes none. */
export function hostPortOf(
  { hostPort, containerPort }: ContainerPort,
  { hostNetwork }: Pick<PodSpec, 'hostNetwork'>,
): number {
  return hostPort || (hostNetwork === true ? containerPort : 0)
}

const isUnspecified = (ip: string) => ip === '0.0.0.0' || ip === '::'

/** Whether any of `wanted` is taken by `used`. */
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
