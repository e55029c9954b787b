/** Anti-affinity groups without room for another instance. */
import type { ReconcileResult } from '@tenon/kube'
import { type OfferingNews, ProviderError } from '@tenon/provider'
import type { Listeners } from '@tenon/runtime'
import type { ExoscaleClient } from '../api/client.ts'
import { isApiError } from '../api/errors.ts'
import type { ExoscaleNodeClass } from '../nodeclass/types.ts'

const groupCapacity = 8
/** How often a full group is checked until it has room. */
const periodMs = 30_000
/** How long launches avoid a full group. */
const pauseMs = 10 * 60_000

/** Detects full groups, and members that leave them. */
export class FullGroups {
  readonly #api: Pick<ExoscaleClient, 'getAntiAffinityGroup'>
  readonly #news: Listeners<OfferingNews>
  /** Ids of groups that were full at the last check. */
  readonly #full = new Set<string>()

  constructor(deps: {
    readonly api: Pick<ExoscaleClient, 'getAntiAffinityGroup'>
    readonly news: Listeners<OfferingNews>
  }) {
    this.#api = deps.api
    this.#news = deps.news
  }

  /** @throws ProviderError if a group of the node class is full, ExoscaleApiError if one cannot be read. */
  async check({ metadata, status }: ExoscaleNodeClass, signal: AbortSignal | undefined): Promise<void> {
    for (const id of status?.antiAffinityGroups ?? []) {
      const group = await this.#api.getAntiAffinityGroup(id, signal)
      const members = group.instances?.length ?? 0
      if (members < groupCapacity) continue
      this.#full.add(id)
      throw new ProviderError(
        'insufficientCapacity',
        `anti-affinity group ${id} (${group.name ?? 'unnamed'}) of ExoscaleNodeClass ${metadata.name} is full: ${members}/${groupCapacity} instances; give the NodePool a node class with another group`,
        { blames: { what: 'nodeClass', pauseMs, endsOnRelease: true } },
      )
    }
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    for (const id of this.#full) {
      const members = await this.#api.getAntiAffinityGroup(id, signal).then(
        ({ instances = [] }) => instances.length,
        (error: unknown) => {
          if (isApiError(error, 'not-found')) return 0
          throw error
        },
      )
      if (members >= groupCapacity) continue
      this.#full.delete(id)
      this.#news.notify({ kind: 'released' })
    }
    return { kind: 'after', delayMs: periodMs }
  }
}
