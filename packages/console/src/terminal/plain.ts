/** Output without a terminal: a table, a line per change, or the whole state as JSON (console.md 2). */
import { counted, ownValue } from '@tenon/api'
import type { ConsoleView, GroupRow, NodeRow, ViewChange } from '../model/view.ts'
import { shownText } from '../text/shown.ts'
import { ageText, amountText, partOf, percentText, sumText } from './amounts.ts'
import { nodeColumns } from './columns/nodes.ts'
import type { CellFacts } from './columns/column.ts'
import { placed, rowLine, titleLine } from './layout.ts'
import { paintWith } from './paint.ts'

const noPaint = paintWith('none')

/** The header and all nodes. */
export function tableText(view: ConsoleView, rows: readonly NodeRow[], facts: CellFacts): string {
  const columns = placed(nodeColumns(facts), rows, {
    width: 200,
    isWide: false,
    least: new Map(),
    fills: false,
  })
  const lines = rows.map((row) => rowLine(row, columns, noPaint).trimEnd())
  const notes = view.absent.map(({ what, why }) => `note: without ${what}: ${why}`)
  const groups = view.groups
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
    .map((row) => shownText(groupText(row)))
  const head = [...headerLines(view, facts), ...groups, '', titleLine(columns).trimEnd()]
  return `${[...head, ...lines, ...notes].join('\n')}\n`
}

function headerLines({ header }: ConsoleView, { resources, hasPricing }: CellFacts): readonly string[] {
  const { nodes, pendingNodes, pods, price, currency } = header
  const amounts = resources.map((resource) => {
    const { used, allocatable } = ownValue(header.resources, resource) ?? {}
    return `${resource} ${amountText(resource, used)}/${amountText(resource, allocatable)} (${percentText(partOf(header.resources, resource))})`
  })
  const counts =
    pods === undefined
      ? 'pods: not known'
      : `${counted(pods.total, 'pod')}: ${pods.pending} pending, ${pods.running} running, ${pods.bound} bound`
  return [
    shownText(
      [
        `${counted(nodes, 'node')}, ${pendingNodes} pending`,
        ...amounts,
        ...(hasPricing ? [sumText(price, currency)] : []),
        ...(header.staleSince === undefined ? [] : [`stale since ${header.staleSince}`]),
      ].join('; '),
    ),
    counts,
  ]
}

/** One line per changed row. */
export function changeLines(changes: readonly ViewChange[], nowMs: number): readonly string[] {
  const at = new Date(nowMs).toISOString().slice(0, 19)
  return changes.flatMap((change) => textsOf(change, nowMs).map((text) => shownText(`${at}Z ${text}`)))
}

function textsOf(change: ViewChange, nowMs: number): readonly string[] {
  if ('problems' in change) return change.problems.map(({ text }) => `problem: ${text}`)
  if ('absent' in change) return change.absent.map(({ what, why }) => `without ${what}: ${why}`)
  if (!('table' in change)) return []
  const gone = change.removed.map((id) => `${change.table}: ${id} is gone`)
  switch (change.table) {
    case 'nodes':
      return [...change.set.map((row) => nodeText(row, nowMs)), ...gone]
    case 'pendingPods':
      return [
        ...change.set.map(
          ({ id, reason }) => `pod ${id} waits${reason === undefined ? '' : `: ${reason.message}`}`,
        ),
        ...change.removed.map((id) => `pod ${id} waits no more`),
      ]
    case 'decisions':
      return change.set.map(({ kind, reason, message }) => `${kind} ${reason}: ${message}`)
    case 'pools':
      return [
        ...change.set.map(
          ({ name, nodes, ready }) => `nodepool ${name}: ${counted(nodes, 'node')}, ready ${ready}`,
        ),
        ...gone,
      ]
    case 'groups':
      return [...change.set.map(groupText), ...gone]
    case 'claims':
    case 'offerings':
      return []
  }
}

function nodeText(row: NodeRow, nowMs: number): string {
  const { name, node, condition, instanceType = '-', zone = '-', pods, podsMax, createdAt } = row
  const marks = [row.cordoned && 'cordoned', row.deleting && 'deleting', row.drifted && 'drifted']
  const what =
    node === undefined ? `pending nodeclaim ${name}: waits for ${condition}` : `node ${name}: ${condition}`
  const more = marks.filter((each) => each !== false).map((each) => ` ${each}`)
  return `${what}${more.join('')} ${instanceType} ${zone} pods ${pods ?? '?'}/${podsMax ?? '?'} cpu ${percentText(partOf(row.resources, 'cpu'))} age ${ageText(createdAt, nowMs)}`
}

/** One sentence about a node group. */
export function groupText({
  name,
  nodes,
  ready,
  minSize,
  maxSize,
  targetSize,
  state,
  message,
}: GroupRow): string {
  const figures =
    nodes === undefined
      ? ''
      : ` ${counted(nodes, 'node')}, ${ready ?? '?'} ready, target ${targetSize ?? '?'}, between ${minSize ?? '?'} and ${maxSize ?? '?'};`
  const isFull = targetSize !== undefined && maxSize !== undefined && targetSize >= maxSize
  const full = isFull ? ', at its maximum size' : ''
  return `nodegroup ${name}:${figures} ${state}${full}${message === undefined ? '' : `: ${message}`}`
}
