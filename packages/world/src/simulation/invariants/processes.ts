/** One controller at a time. */
import { kinds } from '@tenon/api'
import type { Invariant } from './scene.ts'

/** In-flight requests of a leader that has just lost its lease may still arrive for so long. */
const toleratedMs = 15_000

/** Only the holder of the lease writes. */
export const onlyTheLeaderWrites: Invariant = ({ world, clock, violate }) => {
  const heldUntil = new Map<string, number>()
  return {
    apiWrite({ process, plural, method, name = '' }) {
      if (plural === 'leases' || plural === 'events') return
      const lease = world.cluster.server.local.get(kinds.lease, 'kube-system', 'karpenter-leader-election')
      const holder = lease?.spec?.holderIdentity ?? ''
      const now = clock.monotonic()
      heldUntil.set(holder, now)
      if (holder === process.name || process.clock.awakeMs < toleratedMs) return
      const lastMs = heldUntil.get(process.name)
      if (lastMs === undefined || (now - lastMs > toleratedMs && holder !== ''))
        violate('onlyTheLeaderWrites', `${process.name} does ${method} ${plural}/${name}, ${holder} leads`)
    },
  }
}
