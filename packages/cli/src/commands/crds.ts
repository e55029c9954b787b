import { nodeClaimCrd, nodeOverlayCrd, nodePoolCrd } from '@tenon/api'
import { exoscaleNodeClassCrd } from '@tenon/provider-exoscale'
import { kwokNodeClassCrd } from '@tenon/provider-kwok'
import { stringify } from 'yaml'

/** Every CustomResourceDefinition that Tenon serves. */
export function allCrds(): readonly object[] {
  return [nodePoolCrd, nodeClaimCrd, nodeOverlayCrd, exoscaleNodeClassCrd(), kwokNodeClassCrd]
}

/** The definitions as one YAML stream, ready for `kubectl apply -f -`. */
export function crdsYaml(): string {
  return crdDocuments()
    .map(({ yaml }) => `---\n${yaml}`)
    .join('')
}

/** Each definition as a YAML document of its own, with its name. */
export function crdDocuments(): readonly { readonly name: string; readonly yaml: string }[] {
  return allCrds().map((crd) => ({
    name: (crd as { readonly metadata: { readonly name: string } }).metadata.name,
    yaml: stringify(crd, { lineWidth: 0, aliasDuplicateObjects: false }),
  }))
}
