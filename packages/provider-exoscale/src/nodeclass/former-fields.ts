import { ownValue } from '@tenon/api'
import type { ExoscaleNodeClassSpec } from './types.ts'

const replacements: Readonly<Record<string, string>> = {
  securityGroups: 'still honoured; write securityGroupSelectorTerms with one "id" each',
  antiAffinityGroups: 'still honoured; write antiAffinityGroupSelectorTerms with one "id" each',
  privateNetworks: 'still honoured; write privateNetworkSelectorTerms with one "id" each',
  imageGCHighThresholdPercent: 'ignored; write kubelet.imageGCHighThresholdPercent',
  imageGCLowThresholdPercent: 'ignored; write kubelet.imageGCLowThresholdPercent',
  imageMinimumGCAge: 'ignored; write kubelet.imageMinimumGCAge',
  kubeReserved: 'ignored; write kubelet.kubeReserved',
  systemReserved: 'ignored; write kubelet.systemReserved',
  nodeLabels: 'ignored; write the labels under spec.template.metadata.labels of the NodePool',
  nodeTaints: 'ignored; write the taints under spec.template.spec.taints of the NodePool',
}

/** One sentence for each field of earlier releases that is in use, with what to write instead. */
export function formerFieldsOf(spec: ExoscaleNodeClassSpec): readonly string[] {
  const fields = spec as Readonly<Record<string, unknown>>
  return Object.entries(replacements)
    .filter(([field]) => isGiven(ownValue(fields, field)))
    .map(([field, replacement]) => `spec.${field} is ${replacement}`)
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && !(Array.isArray(value) && value.length === 0)
}
