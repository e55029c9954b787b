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

/** The whole API as one OpenAPI 2 document. */
export function openApiV2(definitions: readonly ResourceDefinition[]): object {
  const { paths, schemas } = parts(definitions, 'v2')
  return { swagger: '2.0', info, paths, definitions: schemas }
}

/** The OpenAPI 3 document of one group and version. */
export function openApiV3(
  definitions: readonly ResourceDefinition[],
  group: string,
  version: string,
): object {
  const served = definitions.filter((one) => one.group === group && one.version === version)
  const { paths, schemas } = parts(served, 'v3')
  return { openapi: '3.0.0', info, paths, components: { schemas } }
}
