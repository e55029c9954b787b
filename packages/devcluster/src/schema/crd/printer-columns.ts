import { age } from '@tenon/api'
import type { StoredObject, TableColumn } from '../../contract.ts'
import { ageColumn, nameColumn } from '../columns/cells.ts'
import { compileJsonPath, type JsonPath } from './json-path.ts'

/** A column in a CRD. */
export interface PrinterColumn {
  readonly name: string
  readonly type: string
  readonly format?: string
  readonly description?: string
  readonly priority?: number
  readonly jsonPath: string
}

/** The columns of a custom resource: NAME and the columns in its CRD, or NAME and AGE. */
export function customColumns(declared: readonly PrinterColumn[] | undefined): readonly TableColumn[] {
  if (declared === undefined || declared.length === 0) return [nameColumn, ageColumn]
  return [nameColumn, ...declared.map(customColumn)]
}

function customColumn(declared: PrinterColumn): TableColumn {
  const path = compileJsonPath(declared.jsonPath) ?? (() => [])
  return {
    name: declared.name,
    type: declared.type as TableColumn['type'],
    ...(declared.format === undefined ? {} : { format: declared.format }),
    description: declared.description ?? `Custom resource column ${declared.jsonPath}`,
    priority: declared.priority ?? 0,
    cell: (object, nowMs) => cell(object, path, declared.type, nowMs),
  }
}

function cell(
  object: StoredObject,
  path: JsonPath,
  type: string,
  nowMs: number,
): string | number | boolean | null {
  const found = path(object)
  const first = found[0]
  if (first === undefined || first === null) return null
  switch (type) {
    case 'string':
      return found.map(text).join(' ')
    case 'date':
      return age(first, nowMs)
    case 'integer':
      return typeof first === 'number' ? Math.trunc(first) : null
    case 'number':
      return typeof first === 'number' ? first : null
    case 'boolean':
      return typeof first === 'boolean' ? first : null
    default:
      return text(first)
  }
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
