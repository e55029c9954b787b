/** Notes launches that are only observed, each plan once until it changes. */
import { type Pod, sumOfPrices } from '@tenon/api'
import type { NewClaim } from '@tenon/engine'
import type { Logger } from '@tenon/runtime'
import { keyOf } from '../../state/pods/pods.ts'
import { podsNoted } from '../../journal/entry.ts'
import type { Journal } from '../../journal/journal.ts'
import { podList, shortened } from '../../text.ts'

interface Dependencies {
  readonly journal: Pick<Journal, 'decided' | 'note'>
  readonly logger: Logger
}

export class ObservedLaunches {
  readonly #deps: Dependencies
  /** NodePool of the node that would be launched, by UID of the pod. */
  readonly #noted = new Map<string, string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * @param claims what would be created now.
   * @param pods all that wait; what is known of others is forgotten.
   */
  note(claims: readonly NewClaim[], pods: readonly Pod[]): void {
    const waiting = new Set(pods.map(uidOf))
    for (const uid of this.#noted.keys()) if (!waiting.has(uid)) this.#noted.delete(uid)
    const fresh = claims.filter(({ nodePool, pods: own }) =>
      own.some((pod) => this.#noted.get(uidOf(pod)) !== nodePool),
    )
    for (const { nodePool, pods: own } of fresh) for (const pod of own) this.#noted.set(uidOf(pod), nodePool)
    if (fresh.length > 0) this.#tell(fresh)
  }

  #tell(claims: readonly NewClaim[]): void {
    const { journal, logger } = this.#deps
    const pods = claims.flatMap((claim) => claim.pods)
    const { pricePerHour, unpriced } = sumOfPrices(claims.map((claim) => claim.pricePerHour))
    const decision = journal.decided({
      kind: 'decision',
      reason: 'Provisioned',
      message: `${claims.length} NodeClaim(s) would be created for ${pods.length} pod(s)`,
      pods: podsNoted(pods.map(({ metadata }) => keyOf(metadata))),
      pricePerHour: { before: 0, ...(unpriced === 0 && { after: pricePerHour }) },
      observed: true,
    })
    for (const claim of claims)
      journal.note({
        kind: 'launch',
        reason: 'Provisioned',
        message: `A NodeClaim would be created for ${claim.pods.length} pod(s), of one of these types: ${shortened(claim.instanceTypes)}`,
        nodePool: claim.nodePool,
        pods: podsNoted(claim.pods.map(({ metadata }) => keyOf(metadata))),
        pricePerHour: {
          before: 0,
          ...(claim.pricePerHour !== undefined && { after: claim.pricePerHour }),
        },
        decision,
        observed: true,
      })
    logger.info('observed: nodeclaim(s) would be created', {
      nodeclaims: claims.length,
      Pods: podList(pods),
      decision,
    })
  }
}

const uidOf = ({ metadata }: Pod): string => metadata.uid ?? keyOf(metadata)
