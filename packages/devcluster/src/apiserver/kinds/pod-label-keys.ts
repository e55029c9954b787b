import type { LabelSelector, Pod, PodAffinityTerm } from '@tenon/api'
import { fromLabels } from '@tenon/filters'

type Labels = Readonly<Record<string, string>>

interface Selecting {
  readonly labelSelector?: LabelSelector
  readonly matchLabelKeys?: readonly string[]
  readonly mismatchLabelKeys?: readonly string[]
}

/**
 * The pod with `matchLabelKeys` and `mismatchLabelKeys` merged into its selectors. kube-apiserver does that at the
 * creation, and readers of the pod rely on it.
 */
export function withLabelKeys<T extends Pod>(pod: T): T {
  const own = pod.metadata.labels ?? {}
  const { affinity, topologySpreadConstraints } = pod.spec
  const spec = {
    ...pod.spec,
    ...(affinity && { affinity: affinityWith(affinity, own) }),
    ...(topologySpreadConstraints && {
      topologySpreadConstraints: topologySpreadConstraints.map((each) => selecting(each, own)),
    }),
  }
  return { ...pod, spec }
}

type Affinity = NonNullable<Pod['spec']['affinity']>

function affinityWith(affinity: Affinity, own: Labels): Affinity {
  const { podAffinity, podAntiAffinity } = affinity
  return {
    ...affinity,
    ...(podAffinity && { podAffinity: termsWith(podAffinity, own) }),
    ...(podAntiAffinity && { podAntiAffinity: termsWith(podAntiAffinity, own) }),
  }
}

function termsWith(terms: NonNullable<Affinity['podAffinity']>, own: Labels): typeof terms {
  const required = terms.requiredDuringSchedulingIgnoredDuringExecution
  const preferred = terms.preferredDuringSchedulingIgnoredDuringExecution
  return {
    ...terms,
    ...(required && {
      requiredDuringSchedulingIgnoredDuringExecution: required.map((term) => selecting(term, own)),
    }),
    ...(preferred && {
      preferredDuringSchedulingIgnoredDuringExecution: preferred.map((each) => ({
        ...each,
        podAffinityTerm: selecting<PodAffinityTerm>(each.podAffinityTerm, own),
      })),
    }),
  }
}

function selecting<T extends Selecting>(given: T, own: Labels): T {
  const { labelSelector, matchLabelKeys = [], mismatchLabelKeys = [] } = given
  if (labelSelector === undefined) return given
  const added = [...fromLabels(matchLabelKeys, own, 'In'), ...fromLabels(mismatchLabelKeys, own, 'NotIn')]
  if (added.length === 0) return given
  const matchExpressions = [...(labelSelector.matchExpressions ?? []), ...added]
  return { ...given, labelSelector: { ...labelSelector, matchExpressions } }
}
