import { perObject } from '@tenon/runtime'
import type { ResourceDefinition, StoredObject, TableColumn } from '../../contract.ts'
import { jsonOf } from '../../storage/index.ts'
import { badRequest } from './status.ts'

/** How much of each object is in the rows of a table. */
export type IncludeObject = 'None' | 'Metadata' | 'Object'

const metaVersion = 'meta.k8s.io/v1'

/** Parses `includeObject`. @throws ApiError 400. */
export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const value = query.get('includeObject') || 'Metadata'
  if (value === 'None' || value === 'Metadata' || value === 'Object') return value
  throw badRequest(`unrecognized includeObject value: "${value}"`)
}

const nameFormat = 'Name must be unique within a namespace.'
const fallbackColumns: readonly TableColumn[] = [
  {
    name: 'Name',
    type: 'string',
    format: 'name',
    description: nameFormat,
    priority: 0,
    cell: ({ metadata }) => metadata.name,
  },
]

function columnsOf(definition: ResourceDefinition): readonly TableColumn[] {
  return definition.columns.length === 0 ? fallbackColumns : definition.columns
}

/** The JSON of a table up to its rows. */
export function tableHead(definition: ResourceDefinition, listMeta: object, withColumns = true): string {
  const columns = columnsOf(definition).map(({ name, type, format, description, priority }) => ({
    name,
    type,
    format: format ?? '',
    description,
    priority,
  }))
  const definitions = withColumns ? JSON.stringify(columns) : '[]'
  return `{"kind":"Table","apiVersion":"${metaVersion}","metadata":${JSON.stringify(listMeta)},"columnDefinitions":${definitions},"rows":[`
}

/** The JSON of one row. */
export function tableRow(
  definition: ResourceDefinition,
  object: StoredObject,
  include: IncludeObject,
  nowMs: number,
): string {
  const cells = columnsOf(definition).map((column) => column.cell(object, nowMs))
  const shown =
    include === 'Object' ? jsonOf(object) : include === 'Metadata' ? partialMetadata(object) : 'null'
  return `{"cells":${JSON.stringify(cells)},"object":${shown}}`
}

/** The JSON of an object's PartialObjectMetadata. */
export const partialMetadata = perObject(({ metadata }: StoredObject) =>
  JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion: metaVersion, metadata }),
)
