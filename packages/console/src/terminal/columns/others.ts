/** Columns of NodePools, pods, decisions and costs. */
import { ownValue } from '@tenon/api'
import type { CostGroup } from '@tenon/ask'
import type { DecisionRow, GroupRow, PendingPodRow, PodOnNode, PoolRow, Share } from '../../model/view.ts'
import { ageText, amountText } from '../amounts.ts'
import { type Cell, type CellFacts, type Column, text } from './column.ts'

export interface CostLine extends CostGroup {
  readonly id: string
  /** If not, requests are unknown. */
  readonly arePodsKnown: boolean
  readonly labels: Readonly<Record<string, string>>
}

const nameColumn = <R extends { readonly name: string }>(): Column<R> => ({
  title: 'NAME',
  cell: ({ name }) => text(name),
  rank: 0,
  widest: 63,
  cut: 'middle',
})

export function poolColumns({ nowMs, hasPricing, currency }: CellFacts): readonly Column<PoolRow>[] {
  return [
    { ...nameColumn<PoolRow>(), grows: true },
    {
      title: 'NODES',
      cell: ({ nodes, claims }) => text(nodes === claims ? nodes : `${nodes}/${claims}`),
      rank: 1,
      side: 'right',
    },
    { title: 'STATUS', cell: poolStatus, rank: 2, widest: 30 },
    { title: 'CPU', cell: ({ limits }) => text(limitText(limits['cpu'], 'cpu')), rank: 3, side: 'right' },
    {
      title: 'MEMORY',
      cell: ({ limits }) => text(limitText(limits['memory'], 'memory')),
      rank: 5,
      side: 'right',
    },
    ...(hasPricing
      ? [
          {
            title: `${currency ?? 'PRICE'}/H`,
            cell: ({ price }: PoolRow) =>
              text(`${price.perHour?.toFixed(3) ?? '-'}${price.unpriced > 0 ? ` ?${price.unpriced}` : ''}`),
            rank: 4,
            side: 'right' as const,
          },
        ]
      : []),
    { title: 'WEIGHT', cell: ({ weight }) => text(weight ?? 0), rank: 8, side: 'right' },
    { title: 'DRIFTED', cell: ({ drifted }) => text(drifted), rank: 7, side: 'right' },
    { title: 'BUDGETS', cell: ({ budgets }) => text(budgets.join('; ') || '10%'), rank: 9, widest: 60 },
    { title: 'AGE', cell: ({ createdAt }) => text(ageText(createdAt, nowMs)), rank: 6, side: 'right' },
    { title: 'NODECLASS', cell: ({ nodeClass }) => text(nodeClass), rank: 20, isWide: true },
    {
      title: 'MESSAGE',
      cell: ({ readyMessage, halted, paused }) => text(readyMessage ?? halted ?? paused),
      rank: 21,
      isWide: true,
      widest: 80,
    },
  ]
}

export function groupColumns(): readonly Column<GroupRow>[] {
  const figure = (title: string, rank: number, of: (row: GroupRow) => number | undefined) => ({
    title,
    cell: (row: GroupRow) => text(of(row)),
    rank,
    side: 'right' as const,
  })
  return [
    { ...nameColumn<GroupRow>(), grows: true },
    figure('NODES', 1, ({ nodes }) => nodes),
    figure('READY', 5, ({ ready }) => ready),
    figure('TARGET', 2, ({ targetSize }) => targetSize),
    figure('MIN', 6, ({ minSize }) => minSize),
    figure('MAX', 3, ({ maxSize }) => maxSize),
    { title: 'STATE', cell: groupState, rank: 4 },
    { title: 'WHY', cell: ({ message }) => text(message), rank: 7, widest: 200, cut: 'end' },
  ]
}

function groupState({ state, message }: GroupRow): Cell {
  if (state !== 'Healthy' && state !== 'InProgress') return { text: state, look: 'bad' }
  return message === undefined ? { text: state } : { text: `${state},Held`, look: 'ok' }
}

function poolStatus({ ready, paused, halted }: PoolRow): { text: string; look?: 'ok' | 'bad' } {
  const word = ready === 'True' ? 'Ready' : ready === 'False' ? 'NotReady' : 'Unknown'
  const marks = [paused === undefined ? '' : 'Paused', halted === undefined ? '' : 'Halted']
  const all = [word, ...marks.filter((each) => each !== '')].join(',')
  if (ready === 'False') return { text: all, look: 'bad' }
  return all === 'Ready' ? { text: all } : { text: all, look: 'ok' }
}

function limitText(share: Share | undefined, resource: string): string {
  const limit = share?.allocatable === undefined ? '∞' : amountText(resource, share.allocatable)
  return `${share?.used === undefined ? '-' : amountText(resource, share.used)}/${limit}`
}

export function pendingPodColumns({ nowMs }: CellFacts): readonly Column<PendingPodRow>[] {
  return [
    { title: 'NAMESPACE', cell: ({ namespace }) => text(namespace), rank: 4, widest: 24, cut: 'middle' },
    { ...nameColumn<PendingPodRow>(), widest: 36 },
    { title: 'CPU', cell: ({ requests }) => text(requestText(requests, 'cpu')), rank: 5, side: 'right' },
    {
      title: 'MEMORY',
      cell: ({ requests }) => text(requestText(requests, 'memory')),
      rank: 6,
      side: 'right',
    },
    {
      title: 'WAITS',
      cell: ({ pendingSince, createdAt }) => text(ageText(pendingSince ?? createdAt, nowMs)),
      rank: 1,
      side: 'right',
    },
    { title: 'OWNER', cell: ({ owner }) => text(owner), rank: 8, widest: 30, cut: 'middle' },
    {
      title: 'WHY',
      cell: ({ reason, plannedFor }) =>
        text(reason?.message ?? (plannedFor === undefined ? '' : `planned for ${plannedFor}`)),
      rank: 2,
      widest: 200,
      cut: 'end',
      grows: true,
    },
  ]
}

export function podColumns(): readonly Column<PodOnNode>[] {
  return [
    { title: 'NAMESPACE', cell: ({ namespace }) => text(namespace), rank: 1, widest: 24, cut: 'middle' },
    { ...nameColumn<PodOnNode>(), grows: true },
    { title: 'STATUS', cell: ({ isRunning }) => text(isRunning ? 'Running' : 'Pending'), rank: 2 },
    { title: 'CPU', cell: ({ requests }) => text(requestText(requests, 'cpu')), rank: 3, side: 'right' },
    {
      title: 'MEMORY',
      cell: ({ requests }) => text(requestText(requests, 'memory')),
      rank: 4,
      side: 'right',
    },
    { title: 'OWNER', cell: ({ owner }) => text(owner), rank: 5, widest: 40, cut: 'middle' },
  ]
}

function requestText(requests: Readonly<Record<string, number>>, resource: string): string {
  const amount = ownValue(requests, resource)
  return amount === undefined ? '-' : amountText(resource, amount)
}

export function decisionColumns({ nowMs }: CellFacts): readonly Column<DecisionRow>[] {
  return [
    { title: 'AGE', cell: ({ at }) => text(ageText(at, nowMs)), rank: 1, side: 'right' },
    { title: 'TYPE', cell: ({ kind, observed }) => text(observed === true ? `${kind}*` : kind), rank: 0 },
    { title: 'REASON', cell: ({ reason }) => text(reason), rank: 2, widest: 24 },
    {
      title: 'OBJECT',
      cell: ({ nodes, nodeClaims, nodePool }) => text(nodes[0] ?? nodeClaims[0] ?? nodePool),
      rank: 3,
      widest: 30,
      cut: 'middle',
    },
    { title: 'PRICE/H', cell: ({ pricePerHour }) => text(pricesText(pricePerHour)), rank: 5, side: 'right' },
    { title: 'MESSAGE', cell: ({ message }) => text(message), rank: 4, widest: 300, cut: 'end', grows: true },
  ]
}

function pricesText(prices: DecisionRow['pricePerHour']): string {
  if (prices === undefined) return ''
  const { after, before } = prices
  if (before === undefined) return after?.toFixed(3) ?? ''
  return `${before.toFixed(3)} → ${after?.toFixed(3) ?? '?'}`
}

export function costColumns(by: string, { currency }: CellFacts): readonly Column<CostLine>[] {
  const sum = (line: CostLine) => line.requestedPerHour + line.idlePerHour
  const price = (value: number) => text(value.toFixed(3))
  const ofPods = ({ arePodsKnown }: CostLine, cell: Cell) => (arePodsKnown ? cell : text('?'))
  return [
    { title: by.toUpperCase(), cell: ({ id }) => text(id), rank: 0, widest: 63, cut: 'middle', grows: true },
    { title: `${currency ?? 'PRICE'}/H`, cell: (line) => price(sum(line)), rank: 1, side: 'right' },
    {
      title: 'REQUESTED/H',
      cell: (line) => ofPods(line, price(line.requestedPerHour)),
      rank: 3,
      side: 'right',
    },
    { title: 'IDLE/H', cell: (line) => ofPods(line, price(line.idlePerHour)), rank: 4, side: 'right' },
    { title: 'MONTH', cell: (line) => price(sum(line) * 730), rank: 2, side: 'right' },
    { title: 'PODS', cell: (line) => ofPods(line, text(line.pods)), rank: 6, side: 'right' },
    {
      title: 'UNPRICED',
      cell: ({ unpriced }) => text(unpriced === 0 ? '' : `?${unpriced}`),
      rank: 5,
      side: 'right',
    },
  ]
}
