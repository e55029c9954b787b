import {
  meetsNodeSelectorTerm,
  type Node,
  type PodSpec,
  type Taint,
  tolerates,
  type Toleration,
} from '@tenon/api'
import { labelsInclude } from './selectors.ts'

/** Whether a pod's node selector and required node affinity allow the node. */
export function nodeAllowed(spec: PodSpec, node: Node): boolean {
  if (!labelsInclude(node.metadata.labels, spec.nodeSelector)) return false
  const required = spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  if (required === undefined) return true
  return required.nodeSelectorTerms.some((term) =>
    meetsNodeSelectorTerm(term, node.metadata.name, node.metadata.labels),
  )
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
