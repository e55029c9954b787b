/** Schemas of what commands print, and the builders of schemas. */
export {
  byName,
  count,
  decimal,
  type Fields,
  type JsonSchema,
  list,
  object,
  oneOfKind,
  only,
  optional,
  type Schema,
  text,
  time,
  truth,
  union,
  words,
} from './schema/build.ts'
export { originSchema } from './schema/catalogue.ts'
export { document } from './schema/document.ts'
export { budgetFields } from './schema/explanations.ts'
export { entrySchema } from './schema/journal.ts'
export { askSchemas } from './schema/schemas.ts'
