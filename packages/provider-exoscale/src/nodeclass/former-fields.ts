import { ownValue } from '@tenon/api'
import { formerSettings } from './former-settings.ts'
import type { ExoscaleNodeClassSpec } from './types.ts'

const besideKubelet = (field: string): string =>
  `deprecated and counts where spec.kubelet says nothing else; write kubelet.${field}`

const replacements: Readonly<Record<string, string>> = {
  securityGroups: 'deprecated but still used; write securityGroupSelectorTerms with one "id" each',
  antiAffinityGroups: 'deprecated but still used; write antiAffinityGroupSelectorTerms with one "id" each',
  privateNetworks: 'deprecated but still used; write privateNetworkSelectorTerms with one "id" each',
  imageGCHighThresholdPercent: besideKubelet('imageGCHighThresholdPercent'),
  imageGCLowThresholdPercent: besideKubelet('imageGCLowThresholdPercent'),
  imageMinimumGCAge: besideKubelet('imageMinimumGCAge'),
  kubeReserved: besideKubelet('kubeReserved'),
  systemReserved: besideKubelet('systemReserved'),
  nodeLabels:
    'deprecated; nodes get those labels that their NodePool does not set; write them under spec.template.metadata.labels of the NodePool',
  nodeTaints:
    'deprecated; nodes get those taints that their NodePool does not set; write them under spec.template.spec.taints of the NodePool',
}

/** A field of an earlier release that is in use. */
export interface FormerField {
  /** Path in the node class; keys of maps are quoted in brackets. */
  readonly field: string
  /** What happens with it and what to write instead; the subject of the sentence is the field. */
  readonly message: string
}

/** Fields of earlier releases that are in use, then their ignored values. */
export function formerFieldsOf(spec: ExoscaleNodeClassSpec): readonly FormerField[] {
  const fields = spec as Readonly<Record<string, unknown>>
  const used = Object.entries(replacements)
    .filter(([field]) => isGiven(ownValue(fields, field)))
    .map(([field, message]) => ({ field: `spec.${field}`, message }))
  const unusable = formerSettings(spec).unusable.map(({ field, problem }) => ({
    field,
    message: `ignored: ${problem}`,
  }))
  return [...used, ...unusable]
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)
}
