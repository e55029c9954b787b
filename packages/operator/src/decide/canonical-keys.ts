/** Pods and NodePools with the provider's other names of labels replaced (scheduling.md 1, "Label aliasing"). */
import { type NodePool, type NodeSelectorTerm, type Pod, type Requirement, ownValue } from '@tenon/api'

/** Label keys by their other names. */
export type LabelAliases = Readonly<Record<string, string>>

/** The pod as decisions read it; the same object when it uses no alias. */
export function canonicalPod(pod: Pod, aliases: LabelAliases | undefined): Pod {
  const { nodeSelector, affinity } = pod.spec
  if (aliases === undefined) return pod
  const node = affinity?.nodeAffinity
  const required = node?.requiredDuringSchedulingIgnoredDuringExecution
  const preferred = node?.preferredDuringSchedulingIgnoredDuringExecution ?? []
  const terms = [...(required?.nodeSelectorTerms ?? []), ...preferred.map(({ preference }) => preference)]
  const keys = [
    ...Object.keys(nodeSelector ?? {}),
    ...terms.flatMap(({ matchExpressions = [] }) => matchExpressions.map(({ key }) => key)),
  ]
  if (!keys.some((key) => Object.hasOwn(aliases, key))) return pod
  const nodeAffinity = {
    ...node,
    ...(required && {
      requiredDuringSchedulingIgnoredDuringExecution: {
        ...required,
        nodeSelectorTerms: required.nodeSelectorTerms.map((term) => canonicalTerm(term, aliases)),
      },
    }),
    preferredDuringSchedulingIgnoredDuringExecution: preferred.map((each) => ({
      ...each,
      preference: canonicalTerm(each.preference, aliases),
    })),
  }
  return {
    ...pod,
    spec: {
      ...pod.spec,
      ...(nodeSelector && {
        nodeSelector: Object.fromEntries(
          Object.entries(nodeSelector).map(([key, value]) => [ownValue(aliases, key) ?? key, value]),
        ),
      }),
      ...(node && { affinity: { ...affinity, nodeAffinity } }),
    },
  }
}

/** What a NodePool requires of its nodes, under the names that types and offerings have. */
export function canonicalPool(pool: NodePool, aliases: LabelAliases | undefined): NodePool {
  const { template } = pool.spec
  const { requirements } = template.spec
  if (aliases === undefined || !requirements.some(({ key }) => Object.hasOwn(aliases, key))) return pool
  const renamed = requirements.map(
    (each): Requirement => ({ ...each, key: ownValue(aliases, each.key) ?? each.key }),
  )
  return {
    ...pool,
    spec: { ...pool.spec, template: { ...template, spec: { ...template.spec, requirements: renamed } } },
  }
}

function canonicalTerm(term: NodeSelectorTerm, aliases: LabelAliases): NodeSelectorTerm {
  const { matchExpressions } = term
  if (matchExpressions === undefined) return term
  return {
    ...term,
    matchExpressions: matchExpressions.map((each) => ({
      ...each,
      key: ownValue(aliases, each.key) ?? each.key,
    })),
  }
}
