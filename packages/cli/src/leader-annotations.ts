/** Annotations on the Lease that say where the leader's debug port is (ask.md 1). */

/** Karpenter's own name, so that Karpenter and Tenon never lead at the same time. */
export const leaseName = 'karpenter-leader-election'

export const leaderAnnotations = {
  /** The identity of the process that wrote the annotations; they are valid while it holds the lease. */
  leader: 'tenon.sh/leader',
  /** Debug port on the loopback address of the leader's pod. */
  port: 'tenon.sh/debug-port',
  /** Used instead of the port if the leader does not run in a pod: a loopback address of its host. */
  url: 'tenon.sh/debug-url',
  /** Why the leader only observes; empty while it acts. */
  standsBack: 'tenon.sh/stands-back',
  /** `true` if the leader looks for other controllers of its NodeClaims; otherwise empty, as while `--observe-only` is set. */
  looksForOthers: 'tenon.sh/looks-for-others',
} as const

/** Where the debug pages of a process are. */
export interface DebugPlace {
  readonly port: number
  readonly isInPod: boolean
}

/** The annotations of a leader. Without a debug port, only its identity. */
export function annotationsOf(
  identity: string,
  debug: DebugPlace | undefined,
  looksForOthers: boolean,
): Readonly<Record<string, string>> {
  return {
    [leaderAnnotations.leader]: identity,
    [leaderAnnotations.standsBack]: '',
    [leaderAnnotations.looksForOthers]: looksForOthers ? 'true' : '',
    ...(debug !== undefined &&
      (debug.isInPod
        ? { [leaderAnnotations.port]: String(debug.port) }
        : { [leaderAnnotations.url]: `http://127.0.0.1:${debug.port}` })),
  }
}
