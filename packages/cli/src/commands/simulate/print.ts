/** Prints simulations as text, as a diff, and as an object. */
import { budgetText } from '@tenon/ask/explain'
import type { AddedNodes, LeavingNode, SimulatedPrice, Simulation, SnapshotPlayReport } from '@tenon/ask'
import { type KubeObject, type PricePerHour, priceText } from '@tenon/api'
import { rfc3339 } from '@tenon/runtime'
import { tableLines, TableWriter } from '../../kubectl/output/table.ts'
import { originText } from '../../source/snapshot.ts'

/** Plays of the cluster with and without the change, over the same time. */
export interface Plays {
  readonly forMs: number
  readonly before: SnapshotPlayReport
  readonly after: SnapshotPlayReport
}

const shownPods = 10
const shownNodes = 20

export function simulationText(simulation: Simulation): string {
  const {
    nodes,
    podsStillWaiting,
    podsThatMove,
    podsThatRun,
    podsThatWait,
    priceAfter,
    priceBefore,
    priceUnit,
  } = simulation
  const lines = [originText(simulation), '']
  if (simulation.changesNothing) lines.push('Nothing changes.', '')
  if (podsThatRun.length > 0) lines.push(`Pods that would run: ${named(podsThatRun)}`)
  if (podsThatWait.length > 0) lines.push(`Pods that would wait: ${named(podsThatWait)}`)
  if (podsThatMove.length > 0) lines.push(`Pods that would move: ${named(podsThatMove)}`)
  if (podsStillWaiting > 0) lines.push(`Pods that wait with and without the change: ${podsStillWaiting}`)
  lines.push(
    `Nodes: ${nodes.kept} kept, ${count(nodes.added)} added (${count(nodes.addedAnyway)} without the change), ${nodes.drifted.length} drifted, ${nodes.removed.length} removed`,
    ...simulation.budgets.map((budget) => `NodePool ${budget.nodePool}: ${budgetText(budget)}`),
    `Price per hour: ${sumText(priceBefore, priceUnit)} before, ${sumText(priceAfter, priceUnit)} after`,
  )
  const tables = [
    addedTable(nodes.added),
    leavingTable('drifted', nodes.drifted),
    leavingTable('removed', nodes.removed),
  ]
  return `${[lines.join('\n'), ...tables.filter((table) => table !== '')].join('\n\n')}\n`
}

function named(pods: readonly string[]): string {
  const rest = pods.length - shownPods
  return `${pods.length} (${pods.slice(0, shownPods).join(', ')}${rest > 0 ? ` and ${rest} more` : ''})`
}

const count = (added: readonly AddedNodes[]): number => added.reduce((sum, each) => sum + each.count, 0)

/** Says so if instances of unknown price are left out. */
export function sumText({ pricePerHour, unpriced }: SimulatedPrice, unit: string | undefined): string {
  const sum = `${priceText(pricePerHour, '?', 3)}${unit === undefined ? '' : ` ${unit}`}`
  return unpriced === 0 ? sum : `${sum} and ${unpriced} of unknown price`
}

function eachText(pricePerHour: PricePerHour): string {
  return priceText(pricePerHour, '<unknown>')
}

export function tableText(lines: ReturnType<typeof tableLines>): string {
  let text = ''
  new TableWriter((part) => (text += part)).write(lines)
  return text.trimEnd()
}

export function addedTable(added: readonly AddedNodes[]): string {
  if (added.length === 0) return ''
  return tableText(
    tableLines<AddedNodes>(
      [
        { title: 'ADDED', value: (each) => String(each.count) },
        { title: 'NODEPOOL', value: (each) => each.nodePool },
        { title: 'TYPE', value: (each) => each.instanceType },
        { title: 'PRICE/HOUR', value: (each) => eachText(each.pricePerHour) },
        { title: 'PODS', value: (each) => String(each.pods) },
      ],
      added,
    ),
  )
}

function leavingTable(title: string, nodes: readonly LeavingNode[]): string {
  if (nodes.length === 0) return ''
  const rest = nodes.length - shownNodes
  const table = tableText(
    tableLines<LeavingNode>(
      [
        { title: title.toUpperCase(), value: (each) => each.node ?? each.nodeClaim },
        { title: 'NODEPOOL', value: (each) => each.nodePool },
        { title: 'TYPE', value: (each) => each.instanceType },
        { title: 'PRICE/HOUR', value: (each) => eachText(each.pricePerHour) },
        { title: 'REASON', value: (each) => each.reason ?? 'Deleted' },
      ],
      nodes.slice(0, shownNodes),
    ),
  )
  return rest > 0 ? `${table}\n… and ${rest} more` : table
}

/** New and removed nodes, by NodePool and instance type. */
export function simulationDiff({ nodes }: Simulation): string {
  const changes = new Map<string, number>()
  const add = (nodePool: string, instanceType: string, by: number): void => {
    const key = `${nodePool}/${instanceType}`
    changes.set(key, (changes.get(key) ?? 0) + by)
  }
  for (const each of nodes.added) add(each.nodePool, each.instanceType, each.count)
  for (const each of nodes.addedAnyway) add(each.nodePool, each.instanceType, -each.count)
  for (const each of [...nodes.drifted, ...nodes.removed]) add(each.nodePool, each.instanceType, -1)
  return [...changes]
    .filter(([, by]) => by !== 0)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, by]) => `${by > 0 ? '+' : '-'} ${key} ${Math.abs(by)}\n`)
    .join('')
}

export function playText({ forMs, before, after }: Plays, unit: string | undefined): string {
  const rows: readonly (readonly [string, (report: SnapshotPlayReport) => string])[] = [
    ['PRICE', ({ cost }) => `${cost.toFixed(2)}${unit === undefined ? '' : ` ${unit}`}`],
    ['PEAK PRICE/HOUR', ({ peakPricePerHour }) => peakPricePerHour.toFixed(3)],
    ['NODES AT THE END', ({ instances }) => String(instances)],
    ['LAUNCHES', ({ launches }) => String(launches)],
    ['MOVES', ({ movesTotal }) => String(movesTotal)],
    ['EVICTIONS PER POD', ({ evictionsPerPod }) => evictionsPerPod.toFixed(3)],
    [
      'LONGEST PENDING',
      ({ pending: { maxMs } }) => (maxMs === undefined ? '<none>' : `${Math.round(maxMs / 1000)}s`),
    ],
  ]
  const lines = tableLines<(typeof rows)[number]>(
    [
      { title: `IN ${Math.round(forMs / 60_000)}m`, value: ([title]) => title },
      { title: 'BEFORE', value: ([, of]) => of(before) },
      { title: 'AFTER', value: ([, of]) => of(after) },
    ],
    rows,
  )
  const leftOut = after.leftOut.length === 0 ? '' : `\nNot played: ${after.leftOut.join(', ')}`
  return `\n${tableText(lines)}${leftOut}\n`
}

export interface PlayedCluster
  extends Pick<
    SnapshotPlayReport,
    | 'cost'
    | 'peakPricePerHour'
    | 'instances'
    | 'unpricedInstances'
    | 'launches'
    | 'evictionsPerPod'
    | 'pending'
    | 'hours'
    | 'leftOut'
  > {
  readonly moves: number
}

export interface PrintedSimulation extends Omit<Simulation, 'takenAtMs'> {
  readonly takenAt: string
  readonly played?: {
    readonly forSeconds: number
    readonly before: PlayedCluster
    readonly after: PlayedCluster
  }
}

export function simulationObject(
  simulation: Simulation,
  plays: Plays | undefined,
): KubeObject & PrintedSimulation {
  const { takenAtMs, ...rest } = simulation
  return {
    apiVersion: 'tenon.sh/v1alpha1',
    kind: 'Simulation',
    metadata: { name: 'simulation' },
    takenAt: rfc3339(takenAtMs),
    ...rest,
    ...(plays && {
      played: { forSeconds: plays.forMs / 1000, before: played(plays.before), after: played(plays.after) },
    }),
  }
}

function played(report: SnapshotPlayReport): PlayedCluster {
  const { cost, peakPricePerHour, instances, unpricedInstances, launches } = report
  const { evictionsPerPod, pending, hours, leftOut } = report
  return {
    cost,
    peakPricePerHour,
    instances,
    unpricedInstances,
    launches,
    moves: report.movesTotal,
    evictionsPerPod,
    pending,
    hours,
    leftOut,
  }
}
