/** Says on the lease why its holder only observes, so that preflight and people see it (adoption.md 2). */
import { kinds } from '@tenon/api'
import { createKubeClient } from '@tenon/kube'
import type { Operator } from '@tenon/operator'
import type { Clock, Logger, Transport } from '@tenon/runtime'
import { leaderAnnotations } from '../../leader-annotations.ts'
import { version } from '../../version.ts'

/** @param server its transport writes also while this process only observes. */
export function reportStandingBack(
  others: Operator['others'],
  lease: { readonly namespace: string; readonly name: string },
  { logger, ...server }: { readonly transport: Transport; readonly clock: Clock; readonly logger: Logger },
): void {
  const client = createKubeClient({ ...server, userAgent: `karpenter/${version}` })
  others?.onChange((because = '') => {
    const annotations = { [leaderAnnotations.standsBack]: because }
    client.patch(kinds.lease, lease, { metadata: { annotations } }).catch((error: unknown) => {
      logger.warn('the lease does not say whether this controller only observes', { error })
    })
  })
}
