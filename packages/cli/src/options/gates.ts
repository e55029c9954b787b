/** Feature gates of `--feature-gates`, for the parser, the help and docs/options.md (operations.md 3). */

export interface GateDefinition {
  readonly name: string
  /** `auto` leaves it to the API server's version. */
  readonly fallback: boolean | 'auto'
  readonly meaning: string
  /** Whether it is Tenon's own, and so off with `--compatibility=karpenter`. */
  readonly isOwn?: true
  /** What it is with `--compatibility=karpenter`, unless it is named; the fallback when absent. */
  readonly karpenterFallback?: boolean
}

export const gateDefinitions: readonly GateDefinition[] = [
  {
    name: 'NodeRepair',
    fallback: false,
    meaning: 'Replace nodes that are unhealthy for longer than the provider tolerates.',
  },
  { name: 'ReservedCapacity', fallback: true, meaning: 'Use reserved capacity first.' },
  {
    name: 'SpotToSpotConsolidation',
    fallback: false,
    meaning: 'Replace spot nodes with cheaper spot nodes.',
  },
  { name: 'NodeOverlay', fallback: false, meaning: 'Serve NodeOverlays; their CRD must be installed.' },
  {
    name: 'StaticCapacity',
    fallback: false,
    meaning: 'Keep NodePools with replicas at that number of nodes, independent of pods.',
  },
  {
    name: 'CapacityBuffer',
    fallback: true,
    karpenterFallback: false,
    meaning:
      'Keep nodes ready for the pods of CapacityBuffers, where their CRD is installed. Off with `--compatibility=karpenter` unless it is named.',
  },
  {
    name: 'GroupScheduling',
    fallback: true,
    meaning:
      'Launch nodes for the pods of a PodGroup (of Kubernetes, coscheduling or Volcano) or of a ProvisioningRequest all together or not at all, where these are served.',
    isOwn: true,
  },
  {
    name: 'PlannedPlacement',
    fallback: 'auto',
    meaning:
      'Nominate pods for the nodes they are planned on, which allows cheaper plans. Auto: on from Kubernetes 1.35.',
    isOwn: true,
  },
  {
    name: 'GlobalConsolidation',
    fallback: true,
    meaning:
      'Search for the cheapest set of nodes: several nodes may be replaced by several cheaper ones, not only by one.',
    isOwn: true,
  },
]
