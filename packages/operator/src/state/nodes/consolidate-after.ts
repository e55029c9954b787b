/** How long the nodes of a NodePool must be at rest (api.md, `disruption.consolidateAfter`). */
import { type NodePool, parseNillableDuration } from '@tenon/api'
import { perObject } from '@tenon/runtime'

/**
 * How long nodes of the pool are left alone before they are consolidated, in milliseconds; infinity where they
 * never are. It is asked about with every pod that comes or goes.
 */
export const consolidateAfterMs = perObject(
  ({ spec }: NodePool): number => parseNillableDuration(spec.disruption?.consolidateAfter ?? '0s') ?? 0,
)
