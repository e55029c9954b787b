/** Schemas of whole documents, as `-o json` prints them. */
import { type Fields, type JsonSchema, object, objectJson, only, type Schema, text } from './build.ts'

interface Name {
  readonly name: string
}

const named = object<Name>({ name: text() })

/** @param metadata default: name only. Reports have none. */
export function document<T extends object>(
  kind: string,
  about: string,
  fields: Fields<T>,
  metadata: Pick<Schema<unknown>, 'json'> | 'none' = named,
): JsonSchema {
  const head = { apiVersion: only('tenon.sh/v1alpha1'), kind: only(kind) }
  return published(kind, about, objectJson(head, metadata === 'none' ? {} : { metadata }, fields))
}

/** Adds what a published schema needs. */
export function published(title: string, about: string, json: JsonSchema): JsonSchema {
  return {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    title,
    description: about,
    ...json,
  }
}
