import type { NodeOverlay, NodePool } from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { type CloudProvider, decorated } from '@tenon/provider'
import type { Caches } from '../state/caches.ts'
import { OverlayStore } from './overlay-store.ts'

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
