/** Makes NodeClaims as the provider wants them. */
import { type NewObject, type NodeClaim, type NodePool, wellKnownLabels } from '@tenon/api'
import { type NewClaim, templateClaim } from '@tenon/engine'
import type { CloudProvider } from '@tenon/provider'
import { type CapacityLearning, settingsNote } from '../../cloud/corrected-provider.ts'
import { nodeClaimFor, staticClaimFor } from './create-claim.ts'
import { nodeDefaults } from './node-defaults.ts'

interface Dependencies {
  readonly provider: Pick<
    CloudProvider,
    'defaultTerminationGracePeriodMs' | 'nodeDefaults' | 'wellKnownLabels'
  >
  readonly learning?: CapacityLearning
}

export class ClaimObjects {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param notes annotations that say why there is this claim. */
  planned(claim: NewClaim, notes: Readonly<Record<string, string>>): NewObject<NodeClaim> {
    return nodeClaimFor(claim, this.#deps.provider.defaultTerminationGracePeriodMs, notes)
  }

  /** Annotations of a new claim of a NodePool, with how its node class is now. */
  settingsNote(pool: NodePool): Readonly<Record<string, string>> {
    return settingsNote(this.#deps.learning, pool)
  }

  /** A claim of a static NodePool under a name that is reserved for it. */
  ofStaticPool(
    pool: NodePool,
    name: string,
  ): NewObject<NodeClaim> & { readonly metadata: { readonly name: string } } {
    const { provider } = this.#deps
    const wellKnown = new Set([...wellKnownLabels, ...provider.wellKnownLabels])
    const { defaultTerminationGracePeriodMs: gracePeriodMs } = provider
    const defaults = nodeDefaults(provider, pool)
    const claim = templateClaim({ nodePool: pool, ...(defaults && { defaults }) }, wellKnown)
    const object = staticClaimFor(pool, claim, name, gracePeriodMs)
    return { ...object, metadata: { ...object.metadata, name } }
  }
}
