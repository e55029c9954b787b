/** What a comparison says about its figures, the same as text and as a page (adoption.md 2). */
import type { PrintedShadow } from './shadow.ts'
import { countText, few, type Headline } from './words.ts'

const centDigits = 2

/** Totals of hours may be small: four digits below 1. */
function totalText(amount: number): string {
  const digits = Math.abs(amount) < 1 ? 4 : centDigits
  return amount.toLocaleString('en-US', { minimumFractionDigits: centDigits, maximumFractionDigits: digits })
}

function moneyText(amount: number, { currency }: PrintedShadow): string {
  return currency === undefined ? totalText(amount) : `${totalText(amount)} ${currency}`
}

function signedText(amount: number): string {
  return amount > 0 ? `+${totalText(amount)}` : totalText(amount)
}

/** Which time the comparison is about. */
export function coveredText({ covered, since, source }: PrintedShadow): string {
  const asked = since === undefined ? '' : ` since ${since}`
  if (covered === undefined)
    return `From ${source}: nothing was observed${asked}. Start a controller with --observe-only, beside the autoscaler that runs.`
  const { from, hours, to } = covered
  return `From ${source}: ${hourText(hours)} observed between ${from} and ${to}.`
}

function hourText(hours: number): string {
  return `${hours.toLocaleString('en-US', { maximumFractionDigits: 1 })} h`
}

export function shadowHeadlines(report: PrintedShadow): readonly Headline[] {
  const { evictions, launches, leftPodCount, nodeHours, removals, waiting } = report
  const covered = report.covered?.hours ?? 0
  const average = (hours: number) => (covered === 0 ? 'unknown' : (hours / covered).toFixed(1))
  return [
    costHeadline(report),
    {
      title: 'Nodes on average',
      figure: `${average(nodeHours.other)} → ${average(nodeHours.tenon)}`,
      about: `${launches.other} launched and ${removals.other} removed; Tenon would have launched ${launches.tenon} for pods, and removed ${removals.tenon} with ${countText(removals.replacements, 'replacement')}`,
    },
    {
      title: 'Pods waited for a node on average',
      figure:
        waiting.pods === 0
          ? 'unknown'
          : `${secondsText(waiting.otherSeconds / waiting.pods)} → ${secondsText(waiting.tenonSeconds / waiting.pods)}`,
      about: `${countText(waiting.pods, 'pod')} can be compared, ${waiting.podsNotCompared} cannot; Tenon's nodes are taken to start as fast as those that came`,
    },
    {
      title: 'Evictions',
      figure: `${evictions.other} → ${evictions.tenon}`,
      about: 'Pods on nodes that were removed, and on nodes that Tenon would have removed',
    },
    {
      title: 'Pods that Tenon would have left without a node',
      figure: String(leftPodCount),
      about: 'They got a node that came after them',
    },
  ]
}

function costHeadline(report: PrintedShadow): Headline {
  const { cost } = report
  const title = 'Cost, as it was and with Tenon'
  if (cost === undefined) return { title, figure: 'unknown', about: 'No hour of any node can be compared' }
  const { byLaunches, byMoves, difference, other, tenon } = cost
  const percent = other === 0 ? '' : ` (${((difference / other) * 100).toFixed(1)} %)`
  return {
    title,
    figure: `${moneyText(other, report)} → ${moneyText(tenon, report)}`,
    about: `${signedText(difference)}${percent}: ${signedText(byLaunches)} by launches, ${signedText(byMoves)} by removals and replacements`,
  }
}

function secondsText(seconds: number): string {
  return `${seconds.toFixed(0)} s`
}

/** What limits the comparison, a sentence each. */
export function shadowCaveats(report: PrintedShadow): readonly string[] {
  if (report.covered === undefined) return unreadableCaveat(report)
  const { evictions, launches, notCompared, restarts } = report
  const { undecidedCost, undecidedHours, unpricedHours, unpricedLaunches } = notCompared
  const said = (isSo: boolean, text: string) => (isSo ? [text] : [])
  return [
    ...gapCaveat(report),
    ...said(
      restarts > 0,
      `Observing began anew ${countText(restarts, 'time')}: after that both begin with the nodes that exist.`,
    ),
    ...said(
      unpricedHours > 0 || unpricedLaunches > 0,
      `${hourText(unpricedHours)} of nodes, and launches of Tenon (${unpricedLaunches}), have no known price (${few(notCompared.types)}). They are in no cost.`,
    ),
    ...said(
      notCompared.otherCurrency > 0,
      `${countText(notCompared.otherCurrency, 'price')} in another currency are taken as unknown.`,
    ),
    ...said(
      undecidedHours > 0,
      `For ${hourText(undecidedHours)} of new nodes it is not known what Tenon would have launched: their pods had a node before it decided, or it had none for them. They cost ${moneyText(undecidedCost, report)}, as far as prices are known, and are in no cost.`,
    ),
    ...said(
      launches.hadRoom > 0,
      `${countText(launches.hadRoom, 'node')} came for pods for which Tenon saw room on a node that existed. They count for both, as their pods may have needed the room later.`,
    ),
    ...said(
      evictions.unknownRemovals > 0,
      `${countText(evictions.unknownRemovals, 'node')} left without notice: how many pods that evicted is not known.`,
    ),
    'Each removal is judged on the cluster as it is, and counts until its nodes change. As nothing is carried out, two may count on the same room: what removals and replacements save is an upper bound.',
    'A node that Tenon would have launched otherwise counts for both as soon as other pods run there, too.',
    ...unreadableCaveat(report),
  ]
}

function gapCaveat({ gapCount, gapHours, gaps }: PrintedShadow): readonly string[] {
  if (gapCount === 0) return []
  const times = gaps.map(({ from, to }) => `${from} to ${to}`)
  return [
    `Nothing was observed in ${countText(gapCount, 'period')} of ${hourText(gapHours)} together (${few(times, gapCount, 3)}). They are in no figure.`,
  ]
}

function unreadableCaveat({ unreadableLines }: PrintedShadow): readonly string[] {
  return unreadableLines === 0
    ? []
    : [`${countText(unreadableLines, 'line')} of the journal cannot be read: what they said is unknown.`]
}

/** A column title, and what it says of a case. */
export const caseColumns: readonly string[] = [
  'Node or launch',
  'NodePool',
  'Type',
  'Tenon',
  'Cost',
  'With Tenon',
  'Difference',
]

export function caseCells({
  kind,
  name,
  nodePool,
  instanceType,
  planned,
  reason,
  other,
  tenon,
  difference,
}: PrintedShadow['cases'][number]): readonly string[] {
  const did = [...(planned ?? []), ...(reason === undefined ? [] : [reason])].join(', ')
  return [
    kind === 'launch' ? `launch ${name}` : name,
    nodePool ?? '',
    instanceType ?? '',
    did,
    totalText(other),
    totalText(tenon),
    signedText(difference),
  ]
}

/** What the cases that are not listed are together; empty if all are. */
export function otherCasesText({ otherCases: { count, difference } }: PrintedShadow): string {
  return count === 0 ? '' : `${count.toLocaleString('en-US')} more with ${signedText(difference)}`
}
