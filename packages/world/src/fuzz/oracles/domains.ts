/**
 * The domains that pods with a hard spread constraint are spread over: those that NodePools could open count as well as
 * those that have nodes, or else all pods of an empty cluster could go into one zone.
 */
import { labels as labelKeys, type Pod } from '@tenon/api'
import { fits, requestsOf, type Row, unnamed } from '../rows.ts'

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

/**
 * The machines as pods see them that go by domains: what a NodePool asks for without a value anywhere (`Exists`) is no
 * domain before a node has it.
 */
export function withKnownDomains(rows: readonly Row[], pods: readonly Pod[]): readonly Row[] {
  const keys = new Set(pods.flatMap(topologyKeys))
  return rows.map((row) => {
    const known = Object.entries(row.labels).filter(([key, value]) => value !== unnamed || !keys.has(key))
    return known.length === Object.keys(row.labels).length
      ? row
      : { ...row, labels: Object.fromEntries(known) }
  })
}

function topologyKeys({ spec: { affinity = {}, topologySpreadConstraints = [] } }: Pod): readonly string[] {
  const { podAffinity = {}, podAntiAffinity = {} } = affinity
  const terms = [podAffinity, podAntiAffinity].flatMap(
    ({ requiredDuringSchedulingIgnoredDuringExecution = [] }) =>
      requiredDuringSchedulingIgnoredDuringExecution,
  )
  return [...terms, ...topologySpreadConstraints].map(({ topologyKey }) => topologyKey)
}

/** Keys of the domains, hosts aside: a new host is a new domain. */
function spreadKeys({ spec: { topologySpreadConstraints = [] } }: Pod): readonly string[] {
  const hard = topologySpreadConstraints.filter(
    ({ whenUnsatisfiable }) => whenUnsatisfiable === 'DoNotSchedule',
  )
  return [...new Set(hard.map(({ topologyKey }) => topologyKey))].filter((key) => key !== labelKeys.hostname)
}
