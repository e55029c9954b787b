/** The provider's rules about labels and topology keys of pods, for the engine. */
import { wellKnownLabels } from '@tenon/api'
import type { EligibilityPolicy } from '@tenon/engine'
import type { CloudProvider } from '@tenon/provider'

/** The provider's rules about labels and topologies of pods. */
export type ProviderPodRules = Pick<
  CloudProvider,
  | 'wellKnownLabels'
  | 'restrictedLabels'
  | 'restrictedDomains'
  | 'unsupportedProvisioners'
  | 'unsupportedTopologyKeys'
  | 'labelAliases'
>

export function eligibilityPolicy(provider: ProviderPodRules): EligibilityPolicy {
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
