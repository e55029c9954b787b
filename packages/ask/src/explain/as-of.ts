/** How old the facts of an answer are, and who decided (ask.md 1). */
import { rfc3339 } from '@tenon/runtime'
import type { Snapshot } from '../snapshot/snapshot.ts'

export interface AsOf {
  /** When the facts were read, RFC 3339. */
  readonly facts: string
  /** `controller`: the one that decides. `standby`: one that waits to. `objects`: those of a cluster, without a controller. */
  readonly source: 'controller' | 'standby' | 'objects'
  /** Identity of the controller, or address of the API server. */
  readonly by: string
  /** Where the instance types come from, where no controller was asked. */
  readonly catalogue?: string
}

export function asOf({ origin, takenAtMs }: Pick<Snapshot, 'origin' | 'takenAtMs'>): AsOf {
  const facts = rfc3339(takenAtMs)
  if (origin.kind === 'objects')
    return { facts, source: 'objects', by: origin.server, catalogue: origin.catalogue }
  return { facts, source: origin.isLeading ? 'controller' : 'standby', by: origin.identity }
}
