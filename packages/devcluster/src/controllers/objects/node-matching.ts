import {
  type Node,
  type NodeSelectorRequirement,
  type NodeSelectorTerm,
  type PodSpec,
  type Taint,
  type Toleration,
  ownValue,
} from '@tenon/api'
import { labelsInclude } from './selectors.ts'

/** Whether a pod's node selector and required node affinity allow the node. */
export function nodeAllowed(spec: PodSpec, node: Node): boolean {
  if (!labelsInclude(node.metadata.labels, spec.nodeSelector)) return false
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  if (required === undefined) return true
  return required.nodeSelectorTerms.some((term) => termMatches(term, node))
}

function termMatches(term: NodeSelectorTerm, node: Node): boolean {
  const expressions = term.matchExpressions ?? []
  const fields = term.matchFields ?? []
  if (expressions.length + fields.length === 0) return false
  return (
    expressions.every((each) => requirementMatches(each, ownValue(node.metadata.labels, each.key))) &&
    fields.every((each) =>
      requirementMatches(each, each.key === 'metadata.name' ? node.metadata.name : undefined),
    )
  )
}

function requirementMatches(requirement: NodeSelectorRequirement, value: string | undefined): boolean {
  const values = requirement.values ?? []
  switch (requirement.operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
      return Number.parseInt(value ?? '', 10) > Number(values[0])
    case 'Lt':
      return Number.parseInt(value ?? '', 10) < Number(values[0])
  }
}

export function tolerates(toleration: Toleration, taint: Taint): boolean {
  if (toleration.effect !== undefined && toleration.effect !== taint.effect) return false
  if (toleration.key !== undefined && toleration.key !== '' && toleration.key !== taint.key) return false
  if (toleration.operator === 'Exists') return true
  if (toleration.key === undefined || toleration.key === '') return false
  return (toleration.value ?? '') === (taint.value ?? '')
}

/** The taints of the given effects that no toleration covers. */
export function untolerated(
  taints: readonly Taint[] | undefined,
  tolerations: readonly Toleration[] | undefined,
  effects: readonly Taint['effect'][],
): Taint[] {
  return (taints ?? []).filter(
    (taint) =>
      effects.includes(taint.effect) &&
      !(tolerations ?? []).some((toleration) => tolerates(toleration, taint)),
  )
}
