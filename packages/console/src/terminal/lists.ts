/** The sorted and filtered rows of a place. */
import { labels, ownValue } from '@tenon/api'
import type { CostReport } from '@tenon/ask'
import type { ConsoleModel } from '../model/model.ts'
import type {
  ClaimRow,
  DecisionRow,
  GroupRow,
  NodeRow,
  PendingPodRow,
  PodOnNode,
  PoolRow,
  TableName,
  TableRows,
  ViewChange,
} from '../model/view.ts'
import { partOf } from './amounts.ts'
import type { CostLine } from './columns/others.ts'
import { Costs } from './costs.ts'
import { filterOf, type LabelMatcher } from './filter.ts'
import { OrderedRows } from './ordered-rows.ts'
import type { Sorting, ViewerState } from './state.ts'

export type AnyRow =
  | ClaimRow
  | CostLine
  | DecisionRow
  | GroupRow
  | NodeRow
  | PendingPodRow
  | PodOnNode
  | PoolRow

type Held = { [Table in TableName]: Map<string, TableRows[Table]> }

/** Tabs with the rows of a table, which the user can sort. */
const sortedTables = {
  nodes: 'nodes',
  claims: 'claims',
  pools: 'pools',
  groups: 'groups',
  pods: 'pendingPods',
} as const

export class Lists {
  readonly #held: Held = {
    nodes: new Map(),
    claims: new Map(),
    pools: new Map(),
    groups: new Map(),
    pendingPods: new Map(),
    decisions: new Map(),
    offerings: new Map(),
  }
  readonly #model: ConsoleModel
  readonly #matcher: LabelMatcher
  readonly #resource: string
  /** Of the place that was shown last. */
  #sorted: { readonly key: string; readonly table: TableName; readonly rows: OrderedRows<AnyRow> } | undefined
  #made:
    | { readonly key: string; readonly costs: CostReport | undefined; readonly rows: readonly AnyRow[] }
    | undefined
  #version = 0
  readonly #costs: Costs
  #arePodsKnown = true

  constructor(model: ConsoleModel, matcher: LabelMatcher, resource: string) {
    this.#model = model
    this.#matcher = matcher
    this.#resource = resource
    this.#costs = new Costs(model)
  }

  /** Whether the rows of a place will change without an event. */
  get isCounting(): boolean {
    return this.#costs.isCounting
  }

  take(changes: readonly ViewChange[]): void {
    for (const change of changes) {
      if ('absent' in change) this.#arePodsKnown = !change.absent.some(({ what }) => what === 'pods')
      if (!('table' in change)) continue
      this.#version++
      const rows = this.#held[change.table] as Map<string, TableRows[TableName]>
      const sorted = this.#sorted?.table === change.table ? this.#sorted.rows : undefined
      for (const row of change.set) {
        rows.set(row.id, row)
        sorted?.set(row as AnyRow)
      }
      for (const id of change.removed) {
        rows.delete(id)
        sorted?.delete(id)
      }
    }
  }

  count(table: TableName): number {
    return this.#held[table].size
  }

  node(id: string): NodeRow | undefined {
    return this.#held.nodes.get(id)
  }

  nodeNamed(name: string): NodeRow | undefined {
    return this.#held.nodes.get(`node/${name}`) ?? this.#find(name)
  }

  pools(): Iterable<PoolRow> {
    return this.#held.pools.values()
  }

  /** The rows of the current place, filtered and sorted. */
  rows(state: ViewerState, nowMs: number): readonly AnyRow[] {
    const { place, sorting, onlyFaults, costBy } = state
    const { selected: _, ...where } = place
    const table = ownValue(sortedTables, place.tab)
    if (table !== undefined) {
      const key = JSON.stringify([where, sorting, onlyFaults])
      if (this.#sorted?.key !== key) this.#sorted = { key, table, rows: this.#sortedRows(table, state) }
      return this.#sorted.rows.rows()
    }
    const costs = place.tab === 'cost' ? this.#costs.report(costBy, nowMs) : undefined
    const key = JSON.stringify([this.#version, where, onlyFaults, costBy])
    if (this.#made?.key === key && this.#made.costs === costs) return this.#made.rows
    const all = this.#all(state, costs)
    const kept = all.filter(this.#keeps(state))
    // The journal and costs have a fixed order.
    const rows = place.tab === 'onNode' ? ordered(kept, sorting, this.#resource) : kept
    this.#made = { key, costs, rows }
    return rows
  }

  #sortedRows(
    table: (typeof sortedTables)[keyof typeof sortedTables],
    state: ViewerState,
  ): OrderedRows<AnyRow> {
    const { place, sorting } = state
    const { pool, claim } = place
    const isKept = this.#keeps(state)
    const isHere = (row: AnyRow) =>
      (pool === undefined || ('nodePool' in row && row.nodePool === pool)) &&
      (claim === undefined || row.id === claim)
    return new OrderedRows<AnyRow>(this.#held[table].values(), {
      keeps: (row) => isHere(row) && isKept(row),
      keyOf: (row) => sortKey(row, sorting, this.#resource),
      isReversed: sorting.isReversed,
    })
  }

  /** Whether filter and "only faults" keep a row. */
  #keeps({ place, onlyFaults }: Pick<ViewerState, 'place' | 'onlyFaults'>): (row: AnyRow) => boolean {
    const matches = place.filter === undefined ? undefined : filterOf(place.filter, this.#matcher)
    return (row) =>
      (matches === undefined || matches({ text: textOf(row), labels: 'labels' in row ? row.labels : {} })) &&
      (!onlyFaults || isFault(row))
  }

  /** The last cost report; undefined before the first one. */
  cost({ costBy }: Pick<ViewerState, 'costBy'>, nowMs: number): CostReport | undefined {
    return this.#costs.report(costBy, nowMs)
  }

  #all(state: ViewerState, costs: CostReport | undefined): readonly AnyRow[] {
    const { tab, node } = state.place
    if (tab === 'onNode') return this.#model.podsOn(node ?? '')
    if (tab === 'decisions') return [...this.#held.decisions.values()].toReversed()
    return (costs?.groups ?? []).map((group) => ({
      ...group,
      id: group.name ?? '(none)',
      labels: {},
      arePodsKnown: this.#arePodsKnown,
    }))
  }

  #find(name: string): NodeRow | undefined {
    for (const row of this.#held.nodes.values()) if (row.node === name) return row
    return undefined
  }
}

/** All text of a row, for filters. */
function textOf(row: AnyRow): string {
  const { labels: _, ...rest } = row as AnyRow & { readonly labels?: unknown }
  const pool = 'labels' in row ? (ownValue(row.labels, labels.nodePool) ?? '') : ''
  return `${Object.values(rest)
    .map((value) => (typeof value === 'object' ? JSON.stringify(value) : String(value)))
    .join(' ')} ${pool}`
}

function isFault(row: AnyRow): boolean {
  if ('condition' in row) return row.condition !== 'Ready' || row.deleting || row.drifted || row.cordoned
  if ('state' in row) return row.message !== undefined || row.state === 'Unhealthy'
  if ('waitsFor' in row || ('ready' in row && row.ready !== 'True')) return true
  if ('budgets' in row) return row.paused !== undefined || row.halted !== undefined
  if ('requestedPerHour' in row) return row.unpriced > 0
  if ('kind' in row) return row.kind === 'failure' || row.kind === 'refusal'
  return 'reason' in row || ('isRunning' in row && !row.isRunning)
}

function ordered<R extends AnyRow>(rows: readonly R[], sorting: Sorting, resource: string): readonly R[] {
  const { isReversed } = sorting
  return new OrderedRows<R>(rows, {
    keeps: () => true,
    keyOf: (row) => sortKey(row, sorting, resource),
    isReversed,
  }).rows()
}

/** Nodes sorted by `--node-sort`. */
export function sortedNodes(
  rows: readonly NodeRow[],
  sorting: Sorting,
  resource: string,
): readonly NodeRow[] {
  return ordered(rows, sorting, resource)
}

function sortKey(row: AnyRow, { by, label = '' }: Sorting, resource: string): string | number {
  const name = 'name' in row ? (row.name ?? '') : row.id
  switch (by) {
    case 'name':
      return name
    case 'age':
      return 'createdAt' in row ? (row.createdAt ?? '') : ''
    case 'status':
      return isFault(row) ? 0 : 1
    case 'load':
      return 'resources' in row ? -(partOf(row.resources, resource) ?? -1) : name
    case 'label':
      return 'labels' in row ? (ownValue(row.labels, label) ?? '') : ''
  }
}
