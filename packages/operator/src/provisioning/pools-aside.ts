/** Which pods wait for NodePools that take no part because they are not valid, or only observed. */
import type { CloudProvider } from '@tenon/provider'
import { type NodePool, type Pod, type PodSpec, tolerates, wellKnownLabels } from '@tenon/api'
import {
  allowsAbsence,
  labelRequirements,
  overlaps,
  parseRequirements,
  requiredAlternatives,
  type Requirements,
} from '@tenon/engine'
import { validatePool } from '../state/nodepools/pool-problems.ts'
import { isObserved, observedText } from '../state/nodepools/observed-pools.ts'
import type { Caches } from '../state/caches.ts'
import type { ClusterState } from '../state/cluster-state.ts'

export interface PoolsAsideParts {
  readonly caches: Pick<Caches, 'nodePools'>
  readonly state: Pick<ClusterState, 'isManaged'>
  readonly provider: Pick<CloudProvider, 'nodeClasses' | 'wellKnownLabels'>
}

/** A NodePool that takes no part, with what its template says of each label, contradictions included. */
interface PoolAside {
  readonly pool: NodePool
  /** Why, as a sentence without a full stop. */
  readonly text: string
  readonly statements: ReadonlyMap<string, readonly Requirements[]>
}

/**
 * Answers for a pod with a sentence about the NodePools that could serve it, judged by labels and taints, if they took
 * part; undefined when there is none.
 */
export function poolsAside(deps: PoolsAsideParts): (pod: Pod) => string | undefined {
  const { caches, provider, state } = deps
  const aside = caches.nodePools.list().flatMap((pool): readonly PoolAside[] => {
    if (!state.isManaged(pool) || pool.spec.replicas !== undefined) return []
    if (pool.metadata.deletionTimestamp !== undefined) return []
    const text = textOf(pool, validatePool(pool, provider))
    return text === undefined ? [] : [{ pool, text, statements: statementsOf(pool) }]
  })
  if (aside.length === 0) return () => undefined
  const wellKnown = new Set([...wellKnownLabels, ...provider.wellKnownLabels])
  return ({ spec }) => {
    const texts = aside.filter((each) => mayServe(each, spec, wellKnown)).map(({ text }) => text)
    return texts.length === 0 ? undefined : texts.join('; ')
  }
}

function textOf(pool: NodePool, problems: readonly string[]): string | undefined {
  const { name } = pool.metadata
  if (problems.length > 0) return `NodePool ${name} is ignored because it is invalid: ${problems.join('; ')}`
  return isObserved(pool) ? `NodePool ${name} launches nothing: ${observedText}` : undefined
}

function statementsOf({ spec: { template } }: NodePool): PoolAside['statements'] {
  const stated = [
    ...template.spec.requirements.map((requirement) => parseRequirements([requirement])),
    ...Object.entries(template.metadata?.labels ?? {}).map(([key, value]) =>
      labelRequirements({ [key]: value }),
    ),
  ]
  return Map.groupBy(stated, (each) => [...each.keys()][0] ?? '')
}

/** Of statements that contradict each other, any may turn out to be the one that was meant. */
function mayServe({ pool, statements }: PoolAside, spec: PodSpec, wellKnown: ReadonlySet<string>): boolean {
  const tolerations = spec.tolerations ?? []
  const isTolerated = (pool.spec.template.spec.taints ?? []).every(
    (taint) =>
      taint.effect === 'PreferNoSchedule' || tolerations.some((toleration) => tolerates(toleration, taint)),
  )
  if (!isTolerated) return false
  return requiredAlternatives(spec).some((wanted) =>
    [...wanted].every(([key, set]) => {
      const stated = statements.get(key)
      if (stated === undefined) return allowsAbsence(set) || wellKnown.has(key)
      return stated.some((each) => overlaps(each, new Map([[key, set]])))
    }),
  )
}
