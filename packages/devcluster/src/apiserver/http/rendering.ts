import type { ResourceDefinition, StoredObject } from '../../contract.ts'
import { jsonOf } from '../../storage/index.ts'
import type { Representation } from './negotiation.ts'
import type { Served } from '../kinds/registry.ts'
import { includeObjectOf, partialMetadata, tableHead, tableRow } from './tables.ts'

/** Renders objects as JSON for one request. */
export interface Renderer {
  /** Whether objects are rendered as stored. */
  readonly isPlain: boolean
  /** One object. */
  readonly single: (object: StoredObject) => string
  /** One element of a list. */
  readonly element: (object: StoredObject) => string
  /** The text before and after the elements of a list. */
  readonly frame: (listMeta: object) => readonly [head: string, tail: string]
  /** The object of a watch event; tables have their columns in the first event only. */
  readonly event: (object: StoredObject) => string
  /** The object of a bookmark. */
  readonly bookmark: (metadata: object) => string
}

/** The renderer of a representation. `now` is for the ages in tables. */
export function rendererOf(
  served: Served,
  representation: Representation,
  query: URLSearchParams,
  now: () => number,
): Renderer {
  if (representation.kind === 'table') return tableRenderer(served.definition, query, now)
  if (representation.kind === 'metadata') return metadataRenderer()
  return objectRenderer(served)
}

function objectRenderer(served: Served): Renderer {
  const { kind, listKind } = served.definition
  return {
    isPlain: true,
    single: jsonOf,
    element: jsonOf,
    event: jsonOf,
    frame: (listMeta) => [
      `{"kind":"${listKind}","apiVersion":"${served.apiVersion}","metadata":${JSON.stringify(listMeta)},"items":[`,
      ']}\n',
    ],
    bookmark: (metadata) => JSON.stringify({ kind, apiVersion: served.apiVersion, metadata }),
  }
}

function metadataRenderer(): Renderer {
  const apiVersion = 'meta.k8s.io/v1'
  return {
    isPlain: false,
    single: partialMetadata,
    element: partialMetadata,
    event: partialMetadata,
    frame: (listMeta) => [
      `{"kind":"PartialObjectMetadataList","apiVersion":"${apiVersion}","metadata":${JSON.stringify(listMeta)},"items":[`,
      ']}\n',
    ],
    bookmark: (metadata) => JSON.stringify({ kind: 'PartialObjectMetadata', apiVersion, metadata }),
  }
}

function tableRenderer(definition: ResourceDefinition, query: URLSearchParams, now: () => number): Renderer {
  const include = includeObjectOf(query)
  const row = (object: StoredObject) => tableRow(definition, object, include, now())
  const table = (object: StoredObject, withColumns: boolean) => {
    const { resourceVersion } = object.metadata
    return `${tableHead(definition, { resourceVersion }, withColumns)}${row(object)}]}`
  }
  let columnsSent = false
  return {
    isPlain: false,
    single: (object) => table(object, true),
    element: row,
    frame: (listMeta) => [tableHead(definition, listMeta), ']}\n'],
    event: (object) => {
      const text = table(object, !columnsSent)
      columnsSent = true
      return text
    },
    bookmark: (metadata) => `${tableHead(definition, metadata, false)}]}`,
  }
}
