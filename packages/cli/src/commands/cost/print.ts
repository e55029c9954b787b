/** Prints cost reports as tables and objects. Printed parts add up to the printed total. */
import type { KubeObject } from '@tenon/api'
import { type CostGroup, type CostReport, roundedParts, type SpentReport } from '@tenon/ask/cost'
import type { Cells } from '../../kubectl/output/table.ts'

/** A report and the currency of its prices; undefined if unknown. */
interface ReportWithCurrency<R> {
  readonly report: R
  readonly currency?: string
}

const perHourDigits = 4
const centDigits = 2

/** Rounded amounts of each group, of the idle share, and of the total. */
interface Rounded {
  readonly requested: readonly number[]
  readonly idle: readonly number[]
  readonly idleApart: number
  readonly total: number
}

/** @param hours multiplies rates per hour. */
function rounded(report: CostReport, hours: number, digits: number): Rounded {
  const { groups, idlePerHour, totalPerHour } = report
  const amounts = [
    ...groups.map((group) => group.requestedPerHour),
    ...groups.map((group) => group.idlePerHour),
    idlePerHour,
  ].map((amount) => amount * hours)
  const { parts, total } = roundedParts(amounts, totalPerHour * hours, digits)
  return {
    requested: parts.slice(0, groups.length),
    idle: parts.slice(groups.length, -1),
    idleApart: parts.at(-1) ?? 0,
    total,
  }
}

const isByPods = ({ by }: CostReport): boolean => by === 'namespace' || by === 'owner'

/** One line per group, one for the idle share and one for the total. */
export function costLines(
  { report, currency = 'PRICE' }: ReportWithCurrency<CostReport>,
  hoursPerMonth: number,
): readonly Cells[] {
  const [hour, month] = [rounded(report, 1, perHourDigits), rounded(report, hoursPerMonth, centDigits)]
  const byPods = isByPods(report)
  const title = report.by.toUpperCase()
  const counted = byPods ? 'PODS' : 'INSTANCES'
  const lines = report.groups.map((group, at): Cells => {
    const hours = [hour.requested[at] ?? 0, hour.idle[at] ?? 0]
    const months = sum(month.requested[at], month.idle[at])
    const amounts = isUnknown(group, byPods)
      ? ['<unknown>', '<unknown>', '<unknown>', '<unknown>']
      : [...hours.map(perHour), perHour(sum(...hours)), cents(months)]
    return [
      group.name ?? '<none>',
      String(byPods ? group.pods : group.instances),
      ...amounts,
      String(group.unpriced),
    ]
  })
  const idle: Cells = [
    '<idle>',
    '',
    perHour(0),
    perHour(hour.idleApart),
    perHour(hour.idleApart),
    cents(month.idleApart),
    '0',
  ]
  const pods = report.groups.reduce((all, group) => all + group.pods, 0)
  const total: Cells = [
    { text: 'TOTAL', style: 'bold' },
    String(byPods ? pods : report.instances),
    perHour(sum(...hour.requested)),
    perHour(sum(...hour.idle, hour.idleApart)),
    perHour(hour.total),
    cents(month.total),
    String(byPods ? report.groups.reduce((all, group) => all + group.unpriced, 0) : report.unpriced.length),
  ]
  const surcharge: Cells = [
    'of it per node',
    '',
    '',
    '',
    perHour(report.surchargePerHour),
    cents(report.surchargePerHour * hoursPerMonth),
    '',
  ]
  return [
    [title, counted, 'REQUESTED', 'IDLE', `${currency}/HOUR`, `${currency}/MONTH`, 'UNPRICED'],
    ...lines,
    ...(byPods ? [idle] : []),
    total,
    ...(report.surchargePerHour > 0 ? [surcharge] : []),
  ]
}

/** All of it has an unknown price. */
function isUnknown({ unpriced, pods, instances }: CostGroup, byPods: boolean): boolean {
  return unpriced > 0 && unpriced === (byPods ? pods : instances)
}

const perHour = (amount: number): string => amount.toFixed(perHourDigits)
const cents = (amount: number): string => amount.toFixed(centDigits)
const sum = (...amounts: readonly (number | undefined)[]): number =>
  amounts.reduce<number>((all, amount) => all + (amount ?? 0), 0)

/** A line of a report for programs; amounts are absent if all prices are unknown. */
interface PrintedCostGroup {
  readonly name?: string
  readonly instances?: number
  readonly pods: number
  readonly unpriced: number
  readonly requestedPerHour?: number | undefined
  readonly idlePerHour?: number | undefined
  readonly requestedPerMonth?: number | undefined
  readonly idlePerMonth?: number | undefined
}

export interface PrintedCost {
  readonly takenAt: string
  readonly by: CostReport['by']
  readonly currency?: string
  readonly groups: readonly PrintedCostGroup[]
  readonly idle: { readonly perHour: number; readonly perMonth: number }
  readonly total: { readonly perHour: number; readonly perMonth: number; readonly instances: number }
  /** The part of the total that NodePools add for each node; absent without one. */
  readonly surcharge?: { readonly perHour: number; readonly perMonth: number }
  readonly unpriced: CostReport['unpriced']
}

export function costObject(
  { report, currency, atMs }: ReportWithCurrency<CostReport> & { readonly atMs: number },
  hoursPerMonth: number,
): KubeObject & PrintedCost {
  const [hour, month] = [rounded(report, 1, perHourDigits), rounded(report, hoursPerMonth, centDigits)]
  const byPods = isByPods(report)
  return withFields('CostReport', {
    takenAt: new Date(atMs).toISOString(),
    by: report.by,
    ...(currency !== undefined && { currency }),
    groups: report.groups.map((group, at) => ({
      ...(group.name !== undefined && { name: group.name }),
      ...(!byPods && { instances: group.instances }),
      pods: group.pods,
      unpriced: group.unpriced,
      ...(!isUnknown(group, byPods) && {
        requestedPerHour: hour.requested[at],
        idlePerHour: hour.idle[at],
        requestedPerMonth: month.requested[at],
        idlePerMonth: month.idle[at],
      }),
    })),
    idle: { perHour: hour.idleApart, perMonth: month.idleApart },
    total: { perHour: hour.total, perMonth: month.total, instances: report.instances },
    ...(report.surchargePerHour > 0 && {
      surcharge: {
        perHour: Number(perHour(report.surchargePerHour)),
        perMonth: Number(cents(report.surchargePerHour * hoursPerMonth)),
      },
    }),
    unpriced: report.unpriced,
  })
}

/** One line per NodePool, and one for the total. */
export function spentLines({
  report,
  currency = 'PRICE',
}: ReportWithCurrency<SpentReport>): readonly Cells[] {
  const { groups, spent } = report
  const amounts = roundedParts(
    groups.map((group) => group.spent),
    spent,
    centDigits,
  )
  const hours = (amount: number) => amount.toFixed(1)
  return [
    ['NODEPOOL', 'INSTANCE-HOURS', currency, 'UNPRICED'],
    ...groups.map(
      (group, at): Cells => [
        group.nodePool ?? '<none>',
        hours(group.instanceHours),
        cents(amounts.parts[at] ?? 0),
        String(group.unpriced),
      ],
    ),
    [
      { text: 'TOTAL', style: 'bold' },
      hours(sum(...groups.map((group) => group.instanceHours))),
      cents(amounts.total),
      String(report.unpriced.length),
    ],
  ]
}

export interface PrintedSpent {
  readonly from: string
  readonly to: string
  readonly journalFrom?: string
  readonly currency?: string
  readonly groups: SpentReport['groups']
  readonly spent: number
  readonly unpriced: SpentReport['unpriced']
}

export function spentObject({
  report,
  currency,
}: ReportWithCurrency<SpentReport>): KubeObject & PrintedSpent {
  const { groups, spent, fromMs, toMs, journalFromMs, unpriced } = report
  const amounts = roundedParts(
    groups.map((group) => group.spent),
    spent,
    centDigits,
  )
  return withFields('SpentReport', {
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    ...(journalFromMs !== undefined && { journalFrom: new Date(journalFromMs).toISOString() }),
    ...(currency !== undefined && { currency }),
    groups: groups.map((group, at) => ({ ...group, spent: amounts.parts[at] ?? 0 })),
    spent: amounts.total,
    unpriced,
  })
}

function withFields<T extends object>(kind: string, fields: T): KubeObject & T {
  return { apiVersion: 'tenon.sh/v1alpha1', kind, metadata: { name: 'cost' }, ...fields }
}
