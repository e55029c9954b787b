/** The age and source of the facts of an answer (ask.md 1). */
import { rfc3339 } from '@tenon/runtime'
import type { Snapshot } from '../snapshot/snapshot.ts'

export interface AsOf {
  /** When the facts were read, RFC 3339. */
  readonly facts: string
  /**
   * `controller`: the leader. `standby`: a controller that is not the leader. `objects`: the objects of a
   * cluster, without a controller.
   */
  readonly source: 'controller' | 'standby' | 'objects'
  /** Identity of the controller, or address of the API server. */
  readonly by: string
  /** Where the instance types come from, if not from a controller. */
  readonly catalogue?: string
}

export function asOf({ origin, takenAtMs }: Pick<Snapshot, 'origin' | 'takenAtMs'>): AsOf {
  const facts = rfc3339(takenAtMs)
  if (origin.kind === 'objects')
    return { facts, source: 'objects', by: origin.server, catalogue: origin.catalogue }
  return { facts, source: origin.isLeading ? 'controller' : 'standby', by: origin.identity }
}
