/**
 * The domains of hard spread constraints: those that NodePools could open count as well as those with nodes,
 * otherwise all pods of an empty cluster could go into one zone. Limits of NodePools do not matter.
 */
import { labels as labelKeys, type Pod } from '@tenon/api'
import { fits, requestsOf, type Row, unnamed } from '../rows.ts'

/** One instance for each domain that could be opened for all pods with a spread constraint on its key. */
export function openableDomains(rows: readonly Row[], pods: readonly Pod[]): readonly Row[] {
  const spread = new Map<string, Pod[]>()
  for (const pod of pods)
    for (const key of spreadKeys(pod)) spread.set(key, [...(spread.get(key) ?? []), pod])
  const found = [...spread].flatMap(([key, concerned]) => {
    const requests = concerned.map(({ spec }) => requestsOf(spec))
    const byDomain = new Map<string, Row>()
    for (const row of rows) {
      const domain = new Map(Object.entries(row.labels)).get(key)
      const holdsAll = requests.every((wanted) => fits(wanted, row.allocatable))
      if (domain !== undefined && holdsAll && !byDomain.has(domain)) byDomain.set(domain, row)
    }
    return [...byDomain.values()]
  })
  return [...new Set(found)]
}

/**
 * The instances as pods with domain constraints see them. A label that a NodePool only requires to exist has no
 * value, hence no domain, before a node has it. A node without the label would satisfy any anti-affinity, and
 * no pool creates one, so such instances are omitted.
 */
export function withKnownDomains(rows: readonly Row[], pods: readonly Pod[]): readonly Row[] {
  const keys = new Set(pods.flatMap(topologyKeys))
  const repelling = new Set(pods.flatMap(({ spec }) => keysOf(spec.affinity?.podAntiAffinity)))
  return rows.flatMap((row) => {
    const open = Object.entries(row.labels).flatMap(([key, value]) =>
      value === unnamed && keys.has(key) ? [key] : [],
    )
    if (open.length === 0) return [row]
    if (open.some((key) => repelling.has(key))) return []
    const known = Object.entries(row.labels).filter(([key]) => !open.includes(key))
    return [{ ...row, labels: Object.fromEntries(known) }]
  })
}

function topologyKeys({ spec: { affinity = {}, topologySpreadConstraints = [] } }: Pod): readonly string[] {
  const { podAffinity, podAntiAffinity } = affinity
  const spread = topologySpreadConstraints.map(({ topologyKey }) => topologyKey)
  return [...keysOf(podAffinity), ...keysOf(podAntiAffinity), ...spread]
}

type PodTerms = NonNullable<NonNullable<Pod['spec']['affinity']>['podAffinity']>

function keysOf({
  requiredDuringSchedulingIgnoredDuringExecution: terms = [],
}: PodTerms = {}): readonly string[] {
  return terms.map(({ topologyKey }) => topologyKey)
}

/** Keys of the domains, without hostname: every new node is a new domain. */
function spreadKeys({ spec: { topologySpreadConstraints = [] } }: Pod): readonly string[] {
  const hard = topologySpreadConstraints.filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  )
  return [...new Set(hard.map(({ topologyKey }) => topologyKey))].filter((key) => key !== labelKeys.hostname)
}
