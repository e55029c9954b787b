/** Schemas of what commands print, and what schemas are made with. */
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
} from './build.ts'
export { originSchema } from './catalogue.ts'
export { document } from './document.ts'
export { budgetFields } from './explanations.ts'
export { entrySchema } from './journal.ts'
export { askSchemas } from './schemas.ts'
