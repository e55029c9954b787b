import { createHash } from 'node:crypto'
import type { ResourceDefinition } from '../../contract.ts'
import { pathsOf } from './paths.ts'
import { addKind, type Dialect, SchemaCollection } from './schemas.ts'

type Json = Record<string, unknown>

const info = { title: 'Kubernetes', version: 'unversioned' }

function parts(definitions: readonly ResourceDefinition[], dialect: Dialect): { paths: Json; schemas: Json } {
  const collection = new SchemaCollection(dialect)
  for (const definition of definitions) addKind(collection, definition)
  const paths: Json = {}
  for (const definition of definitions) Object.assign(paths, pathsOf(definition, collection, dialect))
  collection.complete()
  return { paths, schemas: collection.schemas }
}

/** The whole API in one OpenAPI 2 document. */
export function openApiV2(definitions: readonly ResourceDefinition[]): object {
  const { paths, schemas } = parts(definitions, 'v2')
  return { swagger: '2.0', info, paths, definitions: schemas }
}

interface Cached {
  readonly definitions: readonly ResourceDefinition[]
  readonly document: object
  readonly hash: string
}

/** Documents by the first definition of a group and version; a CRD change makes new definitions. */
const cache = new WeakMap<ResourceDefinition, Cached>()

function documentOf(definitions: readonly ResourceDefinition[]): Cached {
  const [first] = definitions
  const known = first === undefined ? undefined : cache.get(first)
  const same =
    known?.definitions.length === definitions.length &&
    known.definitions.every((definition, index) => definition === definitions[index])
  if (known !== undefined && same) return known
  const { paths, schemas } = parts(definitions, 'v3')
  const document = { openapi: '3.0.0', info, paths, components: { schemas } }
  const hash = createHash('sha256').update(JSON.stringify(document)).digest('hex').toUpperCase()
  const cached = { definitions, document, hash }
  if (first !== undefined) cache.set(first, cached)
  return cached
}

function ofVersion(
  definitions: readonly ResourceDefinition[],
  group: string,
  version: string,
): readonly ResourceDefinition[] {
  return definitions.filter((definition) => definition.group === group && definition.version === version)
}

/** The OpenAPI 3 document of one group and version. */
export function openApiV3(
  definitions: readonly ResourceDefinition[],
  group: string,
  version: string,
): object {
  return documentOf(ofVersion(definitions, group, version)).document
}

/**
 * The index of OpenAPI 3 documents (`/openapi/v3`). Each address carries a hash of the document's
 * content, so clients may keep what they read.
 */
export function openApiV3Index(definitions: readonly ResourceDefinition[]): object {
  const paths: Json = {}
  const seen = new Set<string>()
  for (const { group, version } of definitions) {
    const path = group === '' ? `api/${version}` : `apis/${group}/${version}`
    if (seen.has(path)) continue
    seen.add(path)
    const { hash } = documentOf(ofVersion(definitions, group, version))
    paths[path] = { serverRelativeURL: `/openapi/v3/${path}?hash=${hash}` }
  }
  return { paths }
}
