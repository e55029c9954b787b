import type { InstanceType, NodeOverlay, NodePool } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { type CloudProvider, decorated, ProviderError } from '@tenon/provider'
import type { Caches } from '../state/caches.ts'
import { overlaidType, type PoolOverlays, type TypeOverlay } from '@tenon/engine'

/** A provider beneath the overlays, and what puts them on it. */
export interface OverlayLayer {
  readonly store: OverlayStore
  readonly provider: CloudProvider
  readonly overlays: Cache<NodeOverlay>
}

/** What keeps the overlays of a provider; undefined when NodeOverlays are not followed. */
export function overlayLayer(
  { nodeOverlays: overlays }: Pick<Caches, 'nodeOverlays'>,
  provider: CloudProvider,
): OverlayLayer | undefined {
  return overlays === undefined ? undefined : { overlays, provider, store: new OverlayStore() }
}

/**
 * The provider with the overlays of `store` on what it lists. Listing rejects with `unevaluatedNodePool`
 * until the pool was evaluated.
 */
export function overlaidProvider(provider: CloudProvider, store: OverlayStore): CloudProvider {
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool: NodePool, signal?: AbortSignal) =>
    store.overlaidTypes(pool, await provider.getInstanceTypes(pool, signal))
  return decorated(provider, { getInstanceTypes })
}

/** Holds the last evaluation; every pool is unevaluated before the first one. */
class OverlayStore {
  #byPool: ReadonlyMap<string, PoolOverlays> = new Map()
  /**
   * Fresh objects for the same type and the same change would be taken for other types and be read, and
   * sent between threads, again in every decision.
   */
  readonly #overlaid = new WeakMap<TypeOverlay, WeakMap<InstanceType, InstanceType>>()

  /** Replaces everything at once; pools that are not among `byPool` become unevaluated. */
  publish(byPool: ReadonlyMap<NodePool, PoolOverlays>): void {
    this.#byPool = new Map(Array.from(byPool, ([pool, overlays]) => [idOf(pool), overlays]))
  }

  /**
   * The pool's types with their overlays; those without one stay the same objects.
   * @throws ProviderError `unevaluatedNodePool` before the pool was part of an evaluation.
   */
  overlaidTypes(pool: NodePool, types: readonly InstanceType[]): readonly InstanceType[] {
    const overlays = this.#byPool.get(idOf(pool))
    if (overlays === undefined) {
      const { name } = pool.metadata
      throw new ProviderError(
        'unevaluatedNodePool',
        `NodePool ${name} waits for the NodeOverlays to be evaluated for it`,
      )
    }
    if (overlays.size === 0) return types
    return types.map((type) => {
      const overlay = overlays.get(type.name)
      return overlay === undefined ? type : this.#overlaidType(type, overlay)
    })
  }

  #overlaidType(type: InstanceType, overlay: TypeOverlay): InstanceType {
    let known = this.#overlaid.get(overlay)
    if (known === undefined) {
      known = new WeakMap()
      this.#overlaid.set(overlay, known)
    }
    let overlaid = known.get(type)
    if (overlaid === undefined) {
      overlaid = overlaidType(type, overlay)
      known.set(type, overlaid)
    }
    return overlaid
  }
}

/** A pool that was deleted and made again is another one. */
function idOf({ metadata }: NodePool): string {
  return metadata.uid ?? metadata.name
}
