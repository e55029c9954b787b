/** Problems that need the user's attention. */
import type { GroupRow, NodeRow, OfferingRow, PendingPodRow, PoolRow, Problem } from './view.ts'

/** How long a node or a pod may take to become ready. */
const patienceMs = 60_000

export interface ProblemTables {
  readonly nodes: readonly NodeRow[]
  readonly pools: readonly PoolRow[]
  readonly groups: readonly GroupRow[]
  readonly pendingPods: readonly PendingPodRow[]
  readonly offerings: readonly OfferingRow[]
}

export function problemsOf(tables: ProblemTables, nowMs: number): readonly Problem[] {
  return [
    ...poolProblems(tables.pools),
    ...groupProblems(tables.groups),
    ...podProblems(tables.pendingPods, nowMs),
    ...nodeProblems(tables.nodes, nowMs),
    ...offeringProblems(tables.offerings),
  ]
}

function poolProblems(pools: readonly PoolRow[]): readonly Problem[] {
  const sorted = pools.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return sorted.flatMap(({ name, ready, readyMessage = '', paused, halted }) => {
    const object = `nodepool/${name}`
    const why = readyMessage === '' ? '' : `: ${readyMessage}`
    const problems: Problem[] = []
    if (paused !== undefined) problems.push({ id: `paused/${name}`, kind: 'paused', text: paused, object })
    if (halted !== undefined)
      problems.push({ id: `rolloutHalted/${name}`, kind: 'rolloutHalted', text: halted, object })
    if (ready === 'False')
      problems.push({
        id: `poolNotReady/${name}`,
        kind: 'poolNotReady',
        text: `NodePool ${name} is not ready${why}`,
        object,
      })
    return problems
  })
}

function groupProblems(groups: readonly GroupRow[]): readonly Problem[] {
  const sorted = groups.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return sorted.flatMap(({ name, state, message }) =>
    message === undefined && state !== 'Unhealthy'
      ? []
      : [
          {
            id: `groupNotScaled/${name}`,
            kind: 'groupNotScaled' as const,
            text: `Node group ${name}: ${message ?? 'too many of its nodes are not ready'}`,
          },
        ],
  )
}

function podProblems(pods: readonly PendingPodRow[], nowMs: number): readonly Problem[] {
  const since = pods
    .flatMap(({ pendingSince, deleting }) => (pendingSince === undefined || deleting ? [] : [pendingSince]))
    .filter((each) => nowMs - Date.parse(each) > patienceMs)
    .toSorted()
  const [first] = since
  if (first === undefined) return []
  const text = `${since.length} ${since.length === 1 ? 'pod has' : 'pods have'} waited for more than a minute`
  return [{ id: 'podsPending', kind: 'podsPending', text, since: first }]
}

function nodeProblems(nodes: readonly NodeRow[], nowMs: number): readonly Problem[] {
  const down = nodes.filter(
    ({ node, condition, conditionSince }) =>
      node !== undefined && condition !== 'Ready' && nowMs - Date.parse(conditionSince ?? '') > patienceMs,
  )
  const [first] = down.toSorted((a, b) => ((a.conditionSince ?? '') < (b.conditionSince ?? '') ? -1 : 1))
  if (first === undefined) return []
  const more = down.length > 1 ? ` and ${down.length - 1} more` : ''
  return [
    {
      id: 'nodeNotReady',
      kind: 'nodeNotReady',
      text: `Node ${first.name}${more}: not ready`,
      ...(first.conditionSince !== undefined && { since: first.conditionSince }),
      object: `node/${first.name}`,
    },
  ]
}

/** Only offerings that failed recently are problems: many are never available somewhere. */
function offeringProblems(offerings: readonly OfferingRow[]): readonly Problem[] {
  const short = offerings.filter(({ available, because }) => !available && because !== undefined)
  const [first] = short.toSorted((a, b) => (a.id < b.id ? -1 : 1))
  if (first === undefined) return []
  const more = short.length > 1 ? ` and ${short.length - 1} more` : ''
  const text = `${first.instanceType} in ${first.zone} (${first.capacityType})${more} cannot be bought: ${first.because ?? ''}`
  return [{ id: 'offeringShort', kind: 'offeringShort', text }]
}
