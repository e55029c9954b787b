/** The provider's rules about labels and topology keys of pods, as the engine reads them. */
import { wellKnownLabels } from '@tenon/api'
import type { EligibilityPolicy } from '@tenon/engine'
import type { CloudProvider } from '@tenon/provider'

/** What a provider says about labels and topologies that pods may ask for. */
export type PodRules = Pick<
  CloudProvider,
  | 'wellKnownLabels'
  | 'restrictedLabels'
  | 'restrictedDomains'
  | 'unsupportedProvisioners'
  | 'unsupportedTopologyKeys'
  | 'labelAliases'
>

/** What pods may ask on this provider's nodes. */
export function eligibilityPolicy(provider: PodRules): EligibilityPolicy {
  const { restrictedDomains, labelAliases } = provider
  return {
    wellKnownLabels: new Set([...wellKnownLabels, ...provider.wellKnownLabels]),
    restrictedLabels: new Set(provider.restrictedLabels),
    unsupportedProvisioners: new Set(provider.unsupportedProvisioners),
    unsupportedTopologyKeys: new Set(provider.unsupportedTopologyKeys),
    ...(restrictedDomains && { restrictedDomains }),
    ...(labelAliases && { labelAliases: new Map(Object.entries(labelAliases)) }),
  }
}
