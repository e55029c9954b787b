/** The subset of the model that the page gets: no labels, and only NodeClaims without a ready node. */
import type { ClaimRow, ConsoleView, TableChange, TableName, TableRows, ViewChange } from './view.ts'

/** Rows by table name. */
export type PageRows = { readonly [Table in TableName]: Omit<TableRows[Table], 'labels'> }

export type PageView = Omit<ConsoleView, TableName> & {
  readonly [Table in TableName]: readonly PageRows[Table][]
}

/** IDs of removed rows may include some that the page does not have; it ignores them. */
export type PageChange = Exclude<ViewChange, { readonly table: TableName }> | TableChange<PageRows>

/** The last part of a picture, after the rows of the tables. */
export type PagePicture = Omit<ConsoleView, TableName> & {
  readonly mayAct: boolean
  /** Whether there is a recording to replay. */
  readonly mayReplay: boolean
  /** Whose rights the picture is read with; absent: those of whoever started the command. */
  readonly user?: string
  /** Time of the server, in Unix milliseconds. */
  readonly nowMs: number
}

export type PageNodeRow = PageRows['nodes']

/** Leaves out what the page does not show; in a large cluster less than a third remains. */
export function pageView(view: ConsoleView): PageView {
  return {
    ...view,
    nodes: view.nodes.map(withoutLabels),
    claims: view.claims.filter(isOnItsWay).map(withoutLabels),
    pendingPods: view.pendingPods.map(withoutLabels),
  }
}

export function pageChange(change: ViewChange): PageChange {
  if (!('table' in change)) return change
  switch (change.table) {
    case 'nodes':
      return { ...change, set: change.set.map(withoutLabels) }
    case 'pendingPods':
      return { ...change, set: change.set.map(withoutLabels) }
    case 'claims': {
      const others = change.set.filter((claim) => !isOnItsWay(claim)).map(({ id }) => id)
      return {
        ...change,
        set: change.set.filter(isOnItsWay).map(withoutLabels),
        removed: [...change.removed, ...others],
      }
    }
    case 'pools':
    case 'groups':
    case 'decisions':
    case 'offerings':
      return change
  }
}

function isOnItsWay({ waitsFor }: ClaimRow): boolean {
  return waitsFor !== undefined
}

function withoutLabels<Row extends { readonly labels: unknown }>(row: Row): Omit<Row, 'labels'> {
  const { labels: _, ...rest } = row
  return rest
}
