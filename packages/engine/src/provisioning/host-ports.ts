/** Ports that pods claim on their node (scheduling.md 7.3, cluster-state.md 3.4). */
import type { PodSpec } from '@tenon/api'

export interface HostPort {
  readonly ip: string
  readonly port: number
  readonly protocol: string
}

/** Host ports of a pod; an absent address means every address. */
export function hostPortsOf(spec: PodSpec): readonly HostPort[] {
  return spec.containers.flatMap((container) =>
    (container.ports ?? []).flatMap(({ hostPort, hostIP, protocol }) =>
      hostPort === undefined || hostPort === 0
        ? []
        : [
            {
              ip: hostIP === undefined || hostIP === '' ? '0.0.0.0' : hostIP,
              port: hostPort,
              protocol: protocol ?? 'TCP',
            },
          ],
    ),
  )
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
