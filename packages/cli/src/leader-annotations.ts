/** What the leader's Lease tells of where the leader is asked (ask.md 1). */

/** Name of the Lease; Karpenter's own, so that only one of the two leads. */
export const leaseName = 'karpenter-leader-election'

/** Annotations of that Lease. */
export const leaderAnnotations = {
  /** Who wrote them: they hold while it is the holder. */
  leader: 'tenon.sh/leader',
  /** Debug port on the loopback address of the leader's pod. */
  port: 'tenon.sh/debug-port',
  /** In place of the port, outside of a pod: address on the loopback of the host. */
  url: 'tenon.sh/debug-url',
} as const

/** Where the debug pages of one process are. */
export interface DebugPlace {
  readonly port: number
  readonly isInPod: boolean
}

/** The annotations of a leader; without a debug port only who it is. */
export function annotationsOf(
  identity: string,
  debug: DebugPlace | undefined,
): Readonly<Record<string, string>> {
  return {
    [leaderAnnotations.leader]: identity,
    ...(debug !== undefined &&
      (debug.isInPod
        ? { [leaderAnnotations.port]: String(debug.port) }
        : { [leaderAnnotations.url]: `http://127.0.0.1:${debug.port}` })),
  }
}
