/** Columns of nodes and of NodeClaims. */
import { ownValue, priceText } from '@tenon/api'
import type { ClaimRow, NodeRow } from '../../model/view.ts'
import { ageText, amountText, barText, lookOf, partOf, percentText } from '../amounts.ts'
import type { Look } from '../paint.ts'
import { type Cell, type CellFacts, type Column, text } from './column.ts'

const barWidth = 10

export function nodeColumns(facts: CellFacts): readonly Column<NodeRow>[] {
  const [first = 'cpu'] = facts.resources
  return [
    { title: 'NAME', cell: ({ name }) => text(name), rank: 0, grows: true, cut: 'middle', widest: 63 },
    { title: 'POOL', cell: ({ nodePool }) => text(nodePool ?? '-'), rank: 6, widest: 20, cut: 'middle' },
    { title: first.toUpperCase(), cell: (row) => resourceCell(row, first), rank: 1 },
    { title: 'PODS', cell: podsCell, rank: 4, side: 'right' },
    {
      title: 'TYPE',
      cell: ({ instanceType }) => text(instanceType ?? '-'),
      rank: 5,
      widest: 24,
      cut: 'middle',
    },
    { title: 'ZONE', cell: ({ zone }) => text(zone ?? '-'), rank: 9, widest: 16, cut: 'middle' },
    { title: 'CAPACITY', cell: ({ capacityType }) => text(capacityType ?? '-'), rank: 10 },
    ...(facts.hasPricing ? [priceColumn<NodeRow>(facts, 3)] : []),
    { title: 'STATUS', cell: (row) => statusCell(row, facts.nowMs), rank: 2, widest: 28 },
    { title: 'AGE', cell: ({ createdAt }) => text(ageText(createdAt, facts.nowMs)), rank: 8, side: 'right' },
    whyColumn<NodeRow>(7),
    ...labelColumns<NodeRow>(facts),
    { title: 'USED', cell: (row) => usageCell(row, first), rank: 12, side: 'right' },
  ]
}

export function claimColumns(facts: CellFacts): readonly Column<ClaimRow>[] {
  return [
    { title: 'NAME', cell: ({ name }) => text(name), rank: 0, grows: true, cut: 'middle', widest: 63 },
    {
      title: 'TYPE',
      cell: ({ instanceType }) => text(instanceType ?? '-'),
      rank: 4,
      widest: 24,
      cut: 'middle',
    },
    { title: 'CAPACITY', cell: ({ capacityType }) => text(capacityType ?? '-'), rank: 8 },
    { title: 'ZONE', cell: ({ zone }) => text(zone ?? '-'), rank: 6, widest: 16, cut: 'middle' },
    { title: 'NODE', cell: ({ node }) => text(node ?? '-'), rank: 5, widest: 40, cut: 'middle' },
    { title: 'STATUS', cell: (row) => claimStatus(row, facts.nowMs), rank: 1, widest: 28 },
    ...(facts.hasPricing ? [priceColumn<ClaimRow>(facts, 3)] : []),
    { title: 'AGE', cell: ({ createdAt }) => text(ageText(createdAt, facts.nowMs)), rank: 2, side: 'right' },
    { title: 'POOL', cell: ({ nodePool }) => text(nodePool ?? '-'), rank: 7, widest: 20, cut: 'middle' },
    whyColumn<ClaimRow>(9),
    ...labelColumns<ClaimRow>(facts),
    { title: 'NODECLASS', cell: ({ nodeClass }) => text(nodeClass), rank: 21, isWide: true },
    { title: 'IMAGE', cell: ({ imageId }) => text(imageId), rank: 22, isWide: true, cut: 'middle' },
    { title: 'ID', cell: ({ providerId }) => text(providerId), rank: 23, isWide: true, cut: 'middle' },
    {
      title: 'MESSAGE',
      cell: ({ waitsMessage }) => text(waitsMessage),
      rank: 24,
      isWide: true,
      widest: 80,
    },
  ]
}

/** The bar of a resource; below the first line it is preceded by the name. */
export function resourceCell({ resources }: NodeRow, resource: string): Cell {
  const part = partOf(resources, resource)
  const percent = percentText(part).padStart(4)
  return { text: `${barText(part, barWidth)} ${percent}`, look: lookOf(part) }
}

/** The line of an additional resource. */
export function resourceLine(row: NodeRow, resource: string): string {
  const { used, allocatable } = ownValue(row.resources, resource) ?? {}
  return `${resource} ${amountText(resource, used)}/${amountText(resource, allocatable)}`
}

function podsCell({ pods, podsMax }: NodeRow): Cell {
  if (pods === undefined && podsMax === undefined) return text('-')
  return text(`${pods ?? '?'}/${podsMax ?? '?'}`)
}

function usageCell({ usage }: NodeRow, resource: string): Cell {
  const used = ownValue(usage, resource)
  return text(used === undefined ? undefined : amountText(resource, used))
}

function priceColumn<R extends NodeRow | ClaimRow>({ currency }: CellFacts, rank: number): Column<R> {
  const title = `${currency ?? 'PRICE'}/H`
  return { title, cell: ({ pricePerHour }) => text(priceText(pricePerHour)), rank, side: 'right' }
}

/** A clause; the line below the table has it for the selected row also where this column has no room. */
function whyColumn<R extends NodeRow | ClaimRow>(rank: number): Column<R> {
  return { title: 'WHY KEPT', cell: ({ why }) => text(why?.message), rank, widest: 60, cut: 'end' }
}

function labelColumns<R extends NodeRow | ClaimRow>({ extraLabels }: CellFacts): readonly Column<R>[] {
  return extraLabels.map((key, at) => ({
    title: (key.split('/').at(-1) ?? key).toUpperCase(),
    cell: ({ labels }) => text(ownValue(labels, key) ?? '-'),
    rank: 3.5 + at / 1000,
    widest: 24,
    cut: 'middle',
  }))
}

function statusCell(row: NodeRow, nowMs: number): Cell {
  const { condition, conditionSince, node, cordoned, deleting, drifted } = row
  const age = condition === 'Ready' ? '' : `/${ageText(conditionSince ?? row.createdAt, nowMs)}`
  const word = node === undefined ? `Pending ${condition}` : condition
  const marks = [cordoned && 'Cordoned', deleting && 'Deleting', drifted && 'Drifted'].filter(
    (each) => each !== false,
  )
  return { text: [`${word}${age}`, ...marks].join(','), look: lookOfStatus(row) }
}

function lookOfStatus({ condition, node, cordoned, deleting, drifted }: NodeRow): Look | undefined {
  if (node === undefined || cordoned || deleting || drifted) return 'ok'
  return condition === 'Ready' ? undefined : 'bad'
}

function claimStatus(row: ClaimRow, nowMs: number): Cell {
  const { waitsFor, waitsSince, deleting, drifted, ready } = row
  const word =
    waitsFor === undefined
      ? ready === 'True'
        ? 'Ready'
        : 'NotReady'
      : `waits for ${waitsFor}/${ageText(waitsSince, nowMs)}`
  const marks = [deleting && 'Deleting', drifted && 'Drifted'].filter((each) => each !== false)
  const look = waitsFor !== undefined || marks.length > 0 ? 'ok' : ready === 'True' ? undefined : 'bad'
  return { text: [word, ...marks].join(','), look }
}
