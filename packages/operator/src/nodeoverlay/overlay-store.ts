/** What NodeOverlays change, as of their last evaluation. */
import type { InstanceType, NodePool } from '@tenon/api'
import { overlaidType, type PoolOverlays, type TypeOverlay } from '@tenon/engine'
import { ProviderError } from '@tenon/provider'

/** Holds the last evaluation; every pool is unevaluated before the first one. */
export class OverlayStore {
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
