import type { InstanceType, NodeOverlay, NodePool } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { type CloudProvider, decorated, ProviderError } from '@tenon/provider'
import type { Caches } from '../state/caches.ts'
import { overlaidType, type PoolOverlays, type TypeOverlay } from '@tenon/engine'

export interface OverlayLayer {
  readonly store: OverlayStore
  /** Without overlays. */
  readonly provider: CloudProvider
  readonly overlays: Cache<NodeOverlay>
}

/** Undefined if NodeOverlays are not watched. */
export function overlayLayer(
  { nodeOverlays: overlays }: Pick<Caches, 'nodeOverlays'>,
  provider: CloudProvider,
): OverlayLayer | undefined {
  return overlays === undefined ? undefined : { overlays, provider, store: new OverlayStore() }
}

/** The provider with the overlays of `store`. Listing rejects with `unevaluatedNodePool` until the pool was evaluated. */
export function overlaidProvider(provider: CloudProvider, store: OverlayStore): CloudProvider {
  const getInstanceTypes: CloudProvider['getInstanceTypes'] = async (pool: NodePool, signal?: AbortSignal) =>
    store.overlaidTypes(pool, await provider.getInstanceTypes(pool, signal))
  return decorated(provider, { getInstanceTypes })
}

/** The last evaluation. */
class OverlayStore {
  #byPool: ReadonlyMap<string, PoolOverlays> = new Map()
  /** The same objects for the same overlays: decisions compile new types, and send them to their thread. */
  readonly #overlaid = new WeakMap<TypeOverlay, WeakMap<InstanceType, InstanceType>>()

  /** Pools that are not in `byPool` become unevaluated. */
  publish(byPool: ReadonlyMap<NodePool, PoolOverlays>): void {
    this.#byPool = new Map(Array.from(byPool, ([pool, overlays]) => [idOf(pool), overlays]))
  }

  /** @throws ProviderError `unevaluatedNodePool` before the pool was part of an evaluation. */
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

/** A pool that was deleted and created again is another one. */
function idOf({ metadata }: NodePool): string {
  return metadata.uid ?? metadata.name
}
