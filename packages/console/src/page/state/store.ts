/** The state of the page: the tables of the model, header and problems. */
import { computed, signal } from '@preact/signals'
import type { PageChange, PageNodeRow, PagePicture, PageRows } from '../../model/page-view.ts'
import type { Absent, Header, Problem, TableName } from '../../model/view.ts'

type Tables = { readonly [Table in TableName]: Map<string, PageRows[Table]> }

const tables: Tables = {
  nodes: new Map(),
  claims: new Map(),
  pools: new Map(),
  groups: new Map(),
  pendingPods: new Map(),
  decisions: new Map(),
  offerings: new Map(),
}

const versions = {
  nodes: signal(0),
  claims: signal(0),
  pools: signal(0),
  groups: signal(0),
  pendingPods: signal(0),
  decisions: signal(0),
  offerings: signal(0),
}

export const header = signal<Header | undefined>(undefined)
export const problems = signal<readonly Problem[]>([])
export const absences = signal<readonly Absent[]>([])
/** Whether actions are allowed. */
export const mayAct = signal(false)
/** Whether there is a recording to replay. */
export const mayReplay = signal(false)
/** Whose rights the picture is read with, of a page for a team. */
export const user = signal<string | undefined>(undefined)
/** The server's clock minus that of the browser, in milliseconds. */
const clockSkewMs = signal(0)
/** Updated every second while the page is visible; ages refer to it. */
export const tick = signal(Date.now())
/** The current time of the server. */
export const nowMs = computed(() => tick.value + clockSkewMs.value)

/** Prices since this page was opened. */
export const seenPrices = signal<readonly { readonly atMs: number; readonly pricePerHour: number }[]>([])

/** Rows of a table; readers are re-rendered when they change. */
export function rowsOf<Table extends TableName>(table: Table): readonly PageRows[Table][] {
  void versions[table].value
  return [...tables[table].values()]
}

/** Number of changes of a table. */
export function versionOf(table: TableName): number {
  return versions[table].value
}

export function rowOf<Table extends TableName>(table: Table, id: string): PageRows[Table] | undefined {
  void versions[table].value
  return tables[table].get(id)
}

const nodesByName = computed(() => {
  const rows = rowsOf('nodes').flatMap((row) => (row.node === undefined ? [] : [[row.node, row] as const]))
  return new Map<string, PageNodeRow>(rows)
})

/** The row of a Node by its name. */
export function nodeRowOf(node: string): PageNodeRow | undefined {
  return nodesByName.value.get(node)
}

/** Whether there is such an object now; readers are not re-rendered when that changes. */
export function isKnown(kind: 'Node' | 'NodeClaim' | 'NodePool', name: string): boolean {
  if (kind === 'Node') return nodesByName.peek().has(name)
  return kind === 'NodePool' ? tables.pools.has(name) : tables.nodes.has(`claim/${name}`)
}

/**
 * Replaces everything.
 * @param rows of all tables.
 */
export function applyPicture(rows: readonly PageChange[], picture: PagePicture): void {
  for (const table of Object.keys(tables) as TableName[]) {
    tables[table].clear()
    versions[table].value++
  }
  applyChanges(rows)
  clockSkewMs.value = picture.nowMs - Date.now()
  mayAct.value = picture.mayAct
  user.value = picture.user
  mayReplay.value = picture.mayReplay
  problems.value = picture.problems
  absences.value = picture.absent
  setHeader(picture.header)
}

export function applyChanges(changes: readonly PageChange[]): void {
  for (const change of changes) {
    if ('header' in change) setHeader(change.header)
    else if ('problems' in change) problems.value = change.problems
    else if ('absent' in change) absences.value = change.absent
    else {
      for (const id of change.removed) tables[change.table].delete(id)
      setRows(change.table, change.set)
    }
  }
}

function setRows(table: TableName, rows: readonly { readonly id: string }[]): void {
  const known: Map<string, { readonly id: string }> = tables[table]
  for (const row of rows) known.set(row.id, row)
  versions[table].value++
}

const mostPrices = 20_000

function setHeader(next: Header): void {
  header.value = next
  const pricePerHour = next.price.perHour
  if (pricePerHour === undefined || seenPrices.value.at(-1)?.pricePerHour === pricePerHour) return
  seenPrices.value = [...seenPrices.value.slice(-mostPrices), { atMs: nowMs.peek(), pricePerHour }]
}
