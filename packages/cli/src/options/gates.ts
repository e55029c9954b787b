/** Feature gates of `--feature-gates`, for the parser, the help and docs/options.md (operations.md 3). */

export interface GateDefinition {
  readonly name: string
  /** `auto` leaves it to the API server's version. */
  readonly fallback: boolean | 'auto'
  readonly meaning: string
  /** Whether it is Tenon's own, and so off with `--compatibility=karpenter`. */
  readonly isOwn?: true
  /** Known to Karpenter; switching it on does nothing yet. */
  readonly isMissing?: true
}

export const gateDefinitions: readonly GateDefinition[] = [
  {
    name: 'NodeRepair',
    fallback: false,
    meaning: 'Replace nodes that have been unhealthy for longer than the provider tolerates.',
  },
  { name: 'ReservedCapacity', fallback: true, meaning: 'Use reserved capacity first.' },
  {
    name: 'SpotToSpotConsolidation',
    fallback: false,
    meaning: 'Let cheaper spot nodes replace spot nodes.',
  },
  { name: 'NodeOverlay', fallback: false, meaning: 'Serve NodeOverlays; their CRD must be installed.' },
  {
    name: 'StaticCapacity',
    fallback: false,
    meaning: 'Keep NodePools with replicas at that many nodes, whatever pods ask for.',
  },
  {
    name: 'CapacityBuffer',
    fallback: false,
    meaning: 'Hold room for CapacityBuffers. Not served by this version.',
    isMissing: true,
  },
  {
    name: 'PlannedPlacement',
    fallback: 'auto',
    meaning:
      'Steer pods to the nodes they are planned for, which allows cheaper plans. Auto: on from Kubernetes 1.35.',
    isOwn: true,
  },
  {
    name: 'GlobalConsolidation',
    fallback: true,
    meaning: 'Look for the cheapest set of nodes: several cheaper ones may replace several, not only one.',
    isOwn: true,
  },
]
