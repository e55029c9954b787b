/**
 * The domains that pods with a hard spread constraint are spread over: those that NodePools could open count as well as
 * those that have nodes, or else all pods of an empty cluster could go into one zone.
 */
import { labels as labelKeys, type Pod } from '@tenon/api'
import { fits, requestsOf, type Row } from '../rows.ts'

/** For each domain that could be opened for all pods that are spread over its kind, one machine that would do so. */
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

/** Keys of the domains, hosts aside: a new host is a new domain. */
function spreadKeys({ spec: { topologySpreadConstraints = [] } }: Pod): readonly string[] {
  const hard = topologySpreadConstraints.filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  )
  return [...new Set(hard.map(({ topologyKey }) => topologyKey))].filter((key) => key !== labelKeys.hostname)
}
