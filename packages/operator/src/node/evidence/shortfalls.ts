/** How much less than the catalogue promises a node has. */
import { labels, type Node, type NodeClaim } from '@tenon/api'
import { shortfallOf } from '@tenon/engine'
import { isProviderError } from '@tenon/provider'
import type { CapacityLearning } from '../../cloud/corrected-provider.ts'
import type { Caches } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'parsed'>
  readonly learning?: CapacityLearning
}

export class Shortfalls {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** By resource how much more than there is the catalogue promises, as a factor. */
  async marginsOf(
    claim: NodeClaim,
    node: Node,
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<Readonly<Record<string, number>>> {
    const { caches, learning, state } = this.#deps
    const pool = caches.nodePools.get({ name: claim.metadata.labels?.[labels.nodePool] ?? '' })
    const types = pool && (await learning?.provider.getInstanceTypes(pool, signal).catch(nothingKnown))
    const type = types?.find(({ name }) => name === node.metadata.labels?.[labels.instanceType])
    const allocatable = state.parsed(node.status?.allocatable)
    const short = type && shortfallOf(type, { capacity: {}, allocatable })?.allocatable
    return Object.fromEntries(
      Object.entries(short ?? {})
        .filter(([name, { found }]) => name !== 'pods' && names.includes(name) && found > 0)
        .map(([name, { said, found }]) => [name, said / found]),
    )
  }
}

/** Types that cannot be listed now say nothing. */
function nothingKnown(error: unknown): undefined {
  if (!isProviderError(error)) throw error
  return undefined
}
