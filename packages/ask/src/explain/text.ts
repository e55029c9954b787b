/** Explanations as text. */
import { counted, priceText, type ResourceList } from '@tenon/api'
import type { JournalEntry, NodeObstacle, Saving } from '@tenon/operator'
import type { NearestMiss } from '../misses/find.ts'
import type { AsOf } from './as-of.ts'
import type { ClaimPhase } from './claim-phase.ts'
import type { PodGroup } from './gathered.ts'
import type { NodeExplanation } from './node.ts'
import type { NodePoolExplanation, PoolBudget, PoolSchedule } from './node-pool.ts'
import type { PodExplanation } from './pod.ts'
import type { RequestExplanation } from './request.ts'
import type { PodGroupExplanation } from './pod-group.ts'

type Lines = readonly string[]

/** Says how old the facts are, and where they come from. */
export function asOfText({ facts, source, by, catalogue }: AsOf): string {
  const who = {
    controller: 'the controller',
    standby: 'a controller that does not lead,',
    objects: 'the objects of',
  }
  const types = catalogue === undefined ? '' : `; instance types: ${catalogue}`
  return `Facts of ${facts}, from ${who[source]} ${by}${types}`
}

/** Default limit of suggested changes. */
export const shownMisses = 3

export function podText(
  explanation: PodExplanation,
  { all = false }: { readonly all?: boolean } = {},
): Lines {
  const { namespace, name, summary, place, decision, holds = [], pending } = explanation
  return [
    `pod/${name} in ${namespace}: ${summary}`,
    ...(place?.phase ? phaseText(place.phase) : []),
    ...(decision ? [`Decided: ${entryText(decision)}`] : []),
    ...holds.map(({ message, until, blocks }) => `${blocks ? '✗' : '-'} ${message}${untilText(until)}`),
    ...(pending ? pendingText(pending, all) : []),
    asOfText(explanation.asOf),
  ]
}

export function podGroupText(
  explanation: PodGroupExplanation,
  { all = false }: { readonly all?: boolean } = {},
): Lines {
  const { namespace, name, summary, minCount, pods, topologyKey, nodeClaims, member, pending } = explanation
  const { bound, planned, waiting, gated } = pods
  const must =
    minCount === 0 ? 'Its pods run one by one' : `At least ${counted(minCount, 'pod')} run together`
  const where = topologyKey === undefined ? '' : `, in one ${topologyKey}`
  const behind = gated === 0 ? '' : ` (${gated} behind scheduling gates)`
  return [
    `podgroup/${name} in ${namespace}: ${summary}`,
    `${must}${where}: ${bound} with a node, ${planned} planned, ${waiting} waiting${behind}`,
    ...nodeClaims.flatMap(({ name: claim, phase }) =>
      phase === undefined
        ? [`NodeClaim ${claim}: ready`]
        : [`NodeClaim ${claim}: ${lowered(phaseText(phase)[0] ?? '')}`],
    ),
    ...(member === undefined ? [] : [`The first pod without a place is ${member}:`]),
    ...(pending ? pendingText(pending, all) : []),
    asOfText(explanation.asOf),
  ]
}

function lowered(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

function pendingText(
  { nodePools, nodes, misses, untried }: NonNullable<PodExplanation['pending']>,
  all: boolean,
): Lines {
  const shown = all ? misses : misses.slice(0, shownMisses)
  const more = misses.length - shown.length
  return [
    ...nodePools.map(({ nodePool, message }) => `✗ NodePool ${nodePool}: ${message}`),
    ...(nodes?.message === undefined ? [] : [`✗ Existing nodes: ${nodes.message}`]),
    ...(misses.length === 0 ? [] : ['It would run after one of these changes, each decided again:']),
    ...shown.map(missText),
    ...(more > 0 ? [`  and ${more} more: --all`] : []),
    ...(untried > 0 ? [`  ${counted(untried, 'change')} not tried, as time was up`] : []),
  ]
}

function missText({ change, running, waiting, place, pricePerHour }: NearestMiss): string {
  const where =
    place.kind === 'node'
      ? `on node ${place.name}`
      : `on a new ${place.instanceType} of NodePool ${place.nodePool}`
  const cost =
    pricePerHour === undefined ? 'at an unknown price' : `for ${hourlyText(pricePerHour, undefined)}`
  return `+ ${change.words} (${change.field}): ${runningText(running, waiting)}, ${where}, ${cost}`
}

function runningText(running: number, waiting: number): string {
  return waiting === 1 ? 'the pod runs' : `${running} of ${waiting} pods run`
}

/** Pods grouped by reason. */
export function groupsText(groups: readonly PodGroup[]): Lines {
  const [first] = groups
  if (first === undefined) return ['No pod waits for a node']
  return [...groups.flatMap((group) => [...groupText(group), '']), asOfText(first.example.asOf)]
}

const shownWorkloads = 5

export function groupText({ pods, workloads, example }: PodGroup): Lines {
  const kinds = Map.groupBy(workloads, ({ name }) => name.split(' ')[0] ?? '')
  const of = Array.from(kinds, ([kind, { length }]) => counted(length, kind))
  const more = workloads.length - shownWorkloads
  const named = workloads.slice(0, shownWorkloads).map(({ name, pods: count }) => `${name} (${count})`)
  return [
    `${counted(pods, 'pod')} of ${of.join(', ')}: ${example.summary}`,
    ...(example.pending ? pendingText(example.pending, false) : []),
    `  ${named.join(', ')}${more > 0 ? ` and ${more} more` : ''}`,
  ]
}

function phaseText({
  waitsFor,
  forSeconds,
  medianSeconds,
  until,
  isOverdue,
  message,
  otherwise,
}: ClaimPhase): Lines {
  const usual =
    medianSeconds === undefined ? 'how long that usually takes is not known' : `usually ${medianSeconds} s`
  const end = until === undefined ? '' : isOverdue ? `, overdue since ${until}` : `, until ${until} at most`
  return [
    `Waits to be ${waitsFor} for ${forSeconds} s (${usual}${end})${message === undefined ? '' : `: ${message}`}`,
    otherwise,
  ]
}

export function nodeText(explanation: NodeExplanation): Lines {
  const { node, nodeClaim, obstacles, saving, phase, madeBy, history } = explanation
  const name = node === undefined ? `nodeclaim/${nodeClaim ?? ''}` : `node/${node}`
  const [first, ...behind] = obstacles
  return [
    `${name}: ${explanation.summary}${untilText(first?.until)}`,
    whatText(explanation),
    explanation.stuck === undefined ? '' : 'It stays until a PodDisruptionBudget or its workload is changed',
    ...(phase ? phaseText(phase) : []),
    driftText(explanation),
    ...(behind.length > 0 ? ['Behind that, in this order:'] : []),
    ...behind.map(obstacleText),
    ...(saving ? [savingText(saving, explanation.currency)] : []),
    loadText(explanation),
    ...(madeBy ? [`Made by: ${entryText(madeBy)}`] : []),
    ...(history.length > 0 ? ['History:', ...history.map((entry) => `  ${entryText(entry)}`)] : []),
    asOfText(explanation.asOf),
  ].filter((line) => line !== '')
}

function driftText({ drift }: NodeExplanation): string {
  if (drift === undefined) return ''
  return `Drifted: ${drift.reason}${drift.fields.length > 0 ? ` (${drift.fields.join(', ')})` : ''}`
}

function loadText({ holds }: NodeExplanation): string {
  if (holds === undefined) return ''
  const { pods, daemonPods, requests, allocatable } = holds
  return `Holds ${counted(pods, 'pod')}, ${daemonPods} of DaemonSets: ${amounts(requests)} of ${amounts(allocatable)}`
}

function whatText({
  case: what,
  nodePool,
  instanceType,
  zone,
  capacityType,
  pricePerHour,
  currency,
}: NodeExplanation): string {
  const type = [instanceType, zone, capacityType].filter((each) => each !== undefined)
  if (nodePool === undefined && type.length === 0) return ''
  // The history has the cost.
  if (what === 'gone') return [`NodePool ${nodePool ?? ''}`, ...type].join(', ')
  const price = pricePerHour === undefined ? 'price unknown' : hourlyText(pricePerHour, currency)
  return [`NodePool ${nodePool ?? ''}`, ...type, price].join(', ')
}

const obstacleText = ({ cause, message, until }: NodeObstacle): string =>
  `✗ ${cause}: ${message}${untilText(until)}`

function untilText(until: string | undefined): string {
  return until === undefined ? '' : ` (until ${until})`
}

function savingText({ replacements, saves, mustSave, isMore }: Saving, currency: string | undefined): string {
  const what =
    replacements.length === 0
      ? 'Its pods fit on other nodes; without it'
      : `A replacement (${replacements.map(({ instanceType }) => instanceType).join(', ')})`
  const must = mustSave === undefined ? '' : `; it has to ${mustText(mustSave, isMore, currency)}`
  if (saves === undefined) return `${what} saves an unknown amount, as a price is not known${must}`
  if (saves === 0) return `${what} would cost the same${must}`
  return saves < 0
    ? `${what} would cost ${hourlyText(-saves, currency)} more${must}`
    : `${what} would save ${hourlyText(saves, currency)}${must}`
}

function mustText(mustSave: number, isMore: boolean, currency: string | undefined): string {
  if (mustSave === 0 && isMore) return 'cost less'
  return `save ${isMore ? 'more than ' : 'at least '}${hourlyText(mustSave, currency)}`
}

function entryText({ at, kind, reason, message, pricePerHour, currency }: JournalEntry): string {
  const { before, after } = pricePerHour ?? {}
  const price =
    before === undefined || after === undefined
      ? ''
      : ` (${hourlyText(before, undefined)} -> ${hourlyText(after, currency)})`
  return `${at} ${kind} ${reason}: ${message}${price}`
}

function amounts({ cpu, memory }: ResourceList): string {
  const shown = Object.entries({ cpu, memory }).flatMap(([name, amount]) =>
    amount === undefined ? [] : [`${name} ${amount}`],
  )
  return shown.join(', ') || 'nothing'
}

export function requestText(
  explanation: RequestExplanation,
  { all = false }: { readonly all?: boolean } = {},
): Lines {
  const { namespace, name, summary, blocked = [] } = explanation
  return [
    `provisioningrequest/${name} in ${namespace}: ${summary}`,
    ...blocked.flatMap(({ podTemplate, pods, of, pending }) => [
      `✗ ${pods} of ${counted(of, 'pod')} of PodTemplate ${podTemplate}: ${pending.summary}`,
      ...pendingText(pending, all).map((line) => `  ${line}`),
    ]),
    asOfText(explanation.asOf),
  ]
}

export function nodePoolText(explanation: NodePoolExplanation): Lines {
  const { name, summary, nodes, types, offerings, limits, budgets, drift, refused, schedules } = explanation
  const { ignored = [], zoneBalance } = explanation
  return [
    `nodepool/${name}: ${summary}`,
    `Nodes: ${nodes}; ${drift.updated} of ${drift.total} updated${drift.fields.length > 0 ? `, drifted by ${drift.fields.join(', ')}` : ''}`,
    types.problem === undefined
      ? `Types: ${types.left} of ${types.offered} meet the requirements, with ${counted(offerings.left, 'offering')}, ${offerings.available} to be had now`
      : `Types: not known: ${types.problem}`,
    ...offerings.short.map(
      ({ instanceType, zone, capacityType, because, until }) =>
        `✗ ${instanceType}/${zone}/${capacityType}: ${because}${until === undefined ? '' : `, next try at ${until}`}`,
    ),
    ...(zoneBalance === undefined
      ? []
      : [
          `Balance of zones: ${zoneBalance.nodes} of the nodes are not in the cheapest zone, for ${hourlyText(zoneBalance.pricePerHour, undefined)}`,
        ]),
    ...ignored.map(({ field, message, fix }) => `✗ ${field}: ${message}; ${fix ?? ''}`),
    ...limits.map(
      ({ resource, limit, used, reserved }) =>
        `Limit of ${resource}: ${limit}, used ${used}, reserved ${reserved}`,
    ),
    ...budgets.map(budgetText),
    ...schedules.map(scheduleText),
    ...refused.map(({ code, pods, message }) => `Refused ${counted(pods, 'pod')}, ${code}: ${message}`),
    asOfText(explanation.asOf),
  ]
}

/** How many nodes may be disrupted now, and when that changes. */
export function budgetText({ reason, allowed, disrupting, total, timeZone, next }: PoolBudget): string {
  const most = (count: number) => (count > total ? 'all' : String(count))
  const then = next.map(({ from, allowed: count }) => `${most(count)} from ${from}`)
  const zone =
    timeZone === undefined
      ? 'UTC, without daylight saving time'
      : `UTC; schedules follow the clocks of ${timeZone}`
  const later = then.length === 0 ? '' : `; then ${then.join(', ')} (${zone})`
  return `Budget for ${reason}: ${most(allowed)} of ${counted(total, 'node')} now, ${disrupting} disrupted${later}`
}

function scheduleText({ schedule, duration, nodes, isActive, timeZone = 'UTC', next }: PoolSchedule): string {
  const changes = next.map((change) => `${change.isActive ? 'begins' : 'ends'} ${change.at}`)
  const now = isActive ? 'holds now' : 'does not hold now'
  return `Schedule "${schedule}" of ${timeZone} for ${duration}, nodes ${nodes}: ${[now, ...changes].join(', ')}`
}

/** Four decimals, as prices per hour are small. */
function hourlyText(price: number, currency: string | undefined): string {
  return `${priceText(price)}${currency === undefined ? '' : ` ${currency}`} per hour`
}
