import { useMemo, useState } from 'preact/hooks'
import type { ComponentChildren, JSX } from 'preact'

export interface Column<Row> {
  readonly title: string
  readonly cell: (row: Row) => ComponentChildren
  /** Sort key; a column without one is not sortable. */
  readonly order?: (row: Row) => number | string | undefined
  readonly isNumber?: boolean
  /** Sentences, which wrap. */
  readonly isText?: boolean
}

interface Order {
  readonly title: string
  readonly isDown: boolean
}

const pageRows = 100
/** Rendering more at once would block the browser. */
const mostRows = 1000

/** A sortable table; many rows are shown in parts. */
export function Table<Row>({
  caption,
  columns,
  rows,
  rowKey,
  first,
  empty = 'None.',
}: {
  readonly caption: string
  readonly columns: readonly Column<Row>[]
  readonly rows: readonly Row[]
  readonly rowKey: (row: Row) => string
  /** The column to sort by initially. */
  readonly first?: { readonly title: string; readonly isDown?: boolean }
  readonly empty?: string
}): JSX.Element {
  const [order, setOrder] = useState<Order | undefined>(
    first && { title: first.title, isDown: first.isDown ?? false },
  )
  const [shown, setShown] = useState(pageRows)
  const sorted = useMemo(() => inOrder(rows, columns, order), [rows, columns, order])
  if (rows.length === 0) return <p class="empty">{empty}</p>
  return (
    <>
      <div class="scroller" role="region" aria-label={caption} tabIndex={0}>
        <table class="rows">
          <caption class="hidden">{caption}</caption>
          <thead>
            <tr>
              {columns.map((column) => (
                <th
                  key={column.title}
                  scope="col"
                  class={classOf(column)}
                  {...(order?.title === column.title && {
                    'aria-sort': order.isDown ? ('descending' as const) : ('ascending' as const),
                  })}
                >
                  {column.order === undefined ? (
                    column.title
                  ) : (
                    <button
                      type="button"
                      class="sort"
                      onClick={() => {
                        const isSame = order?.title === column.title
                        setOrder({ title: column.title, isDown: isSame && !order.isDown })
                      }}
                    >
                      {/* Numbers and their title end at the same place. */}
                      {column.isNumber === true && <Arrow order={order} title={column.title} />}
                      {column.title}
                      {column.isNumber !== true && <Arrow order={order} title={column.title} />}
                    </button>
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {sorted.slice(0, shown).map((row) => (
              <tr key={rowKey(row)}>
                {columns.map((column) => (
                  <td key={column.title} class={classOf(column)} data-title={column.title}>
                    {column.cell(row)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {sorted.length > shown && (
        <p>
          {shown} of {sorted.length} are shown.{' '}
          <button type="button" onClick={() => setShown(shown + pageRows)}>
            Show {Math.min(pageRows, sorted.length - shown)} more
          </button>{' '}
          {sorted.length <= mostRows && (
            <button type="button" onClick={() => setShown(sorted.length)}>
              Show all
            </button>
          )}
        </p>
      )}
    </>
  )
}

/** Shows the sort direction of a column. */
function Arrow({ order, title }: { readonly order: Order | undefined; readonly title: string }): JSX.Element {
  return (
    <span aria-hidden="true" class="arrow">
      {order?.title === title ? (order.isDown ? '▼' : '▲') : ''}
    </span>
  )
}

function classOf({ isNumber = false, isText = false }: Pick<Column<never>, 'isNumber' | 'isText'>): string {
  return isNumber ? 'number' : isText ? 'sentence' : ''
}

/** Unknown values come last in both directions. */
function inOrder<Row>(
  rows: readonly Row[],
  columns: readonly Column<Row>[],
  order: Order | undefined,
): readonly Row[] {
  const by = columns.find(({ title }) => title === order?.title)?.order
  if (by === undefined || order === undefined) return rows
  return rows.toSorted((a, b) => {
    const [left, right] = [by(a), by(b)]
    if (left === undefined || right === undefined)
      return Number(left === undefined) - Number(right === undefined)
    const compared = left < right ? -1 : left > right ? 1 : 0
    return order.isDown ? -compared : compared
  })
}
