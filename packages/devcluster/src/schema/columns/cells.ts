import { age, ownValue, selectorText } from '@tenon/api'
import type { StoredObject, TableColumn } from '../../contract.ts'

/** Untyped view of stored JSON: every field may be absent. */
// oxlint-disable-next-line typescript/no-explicit-any -- reads objects of every kind
export type Loose = { readonly [field: string]: any }

type CellValue = string | number | boolean | null | undefined

/** A column that shows `<none>` for absent and empty values. */
export function column(
  name: string,
  type: TableColumn['type'],
  cell: (object: Loose, nowMs: number) => CellValue,
  priority = 0,
): TableColumn {
  return {
    name,
    type,
    description: '',
    priority,
    cell: (object: StoredObject, nowMs: number) => cell(object, nowMs) ?? '<none>',
  }
}

/** The first column of every table. */
export const nameColumn: TableColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name must be unique within a namespace.',
  priority: 0,
  cell: (object) => object.metadata.name,
}

export const ageColumn: TableColumn = column('Age', 'string', (object, nowMs) =>
  age(object['metadata']?.creationTimestamp, nowMs),
)

/** `text`, or `otherwise` if it is absent or empty. */
export function orElse(value: unknown, otherwise: string): string {
  return value === undefined || value === null || value === '' ? otherwise : String(value)
}

/** `a=b,c=d`, or `<none>`. */
export function formatLabels(labels: Loose | undefined): string {
  const entries = Object.entries(labels ?? {})
  if (entries.length === 0) return '<none>'
  return entries
    .map(([key, value]) => `${key}=${String(value)}`)
    .sort(byText)
    .join(',')
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

/** A label selector in its text form (`app=web,tier in (a,b)`). */
export function formatSelector(selector: Loose | undefined): string {
  return selectorText(selector ?? {}) || '<none>'
}

/** Names and images of a pod template's containers, for wide output. */
export function containerColumns(specOf: (object: Loose) => Loose | undefined): readonly TableColumn[] {
  const joined = (object: Loose, field: string): string =>
    (specOf(object)?.['containers'] ?? [])
      .map((container: Loose) => ownValue(container, field) ?? '')
      .join(',')
  return [
    column('Containers', 'string', (object) => joined(object, 'name'), 1),
    column('Images', 'string', (object) => joined(object, 'image'), 1),
  ]
}
