import {
  capacityBufferCrd,
  capacityQuotaCrd,
  nodeClaimCrd,
  nodeOverlayCrd,
  nodePoolCrd,
  provisioningRequestCrd,
} from '@tenon/api'
import type { ProviderModule } from '@tenon/provider'
import { stringify } from 'yaml'
import { builtInProviders } from './providers.ts'

/** Every CustomResourceDefinition of Tenon and these providers. */
export async function allCrds(
  providers: readonly ProviderModule[] = builtInProviders,
): Promise<readonly object[]> {
  const own = await Promise.all(providers.map((provider) => provider.crds()))
  return [
    nodePoolCrd,
    nodeClaimCrd,
    nodeOverlayCrd,
    capacityBufferCrd,
    capacityQuotaCrd,
    provisioningRequestCrd,
    ...own.flat(),
  ]
}

/** The definitions as one YAML stream, for `kubectl apply -f -`. */
export async function crdsYaml(providers: readonly ProviderModule[] = builtInProviders): Promise<string> {
  return (await crdDocuments(providers)).map(({ yaml }) => `---\n${yaml}`).join('')
}

/** Each definition as a YAML document, with its name. */
export async function crdDocuments(
  providers: readonly ProviderModule[] = builtInProviders,
): Promise<readonly { readonly name: string; readonly yaml: string }[]> {
  return (await allCrds(providers)).map((crd) => ({
    name: (crd as { readonly metadata: { readonly name: string } }).metadata.name,
    yaml: yamlDocument(crd),
  }))
}

/** YAML without line folding and without aliases. */
export function yamlDocument(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })
}
