/** `tenon schema`: prints the JSON Schemas of other commands' output (ask.md 1). */
import { nearest } from '@tenon/api'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { tableLines, TableWriter } from '../../kubectl/output/table.ts'
import { schemas } from './schemas.ts'

/** @throws CliError if no schema has the name. */
export function runSchema(io: Io, name: string | undefined): void {
  if (name !== undefined) {
    io.out(`${JSON.stringify(schemaNamed(name), undefined, 2)}\n`)
    return
  }
  const columns = [
    { title: 'KIND', value: ([kind]: readonly [string, object]) => kind },
    { title: 'DESCRIPTION', value: ([, schema]: readonly [string, object]) => aboutOf(schema) },
  ]
  new TableWriter(io.out).write(tableLines(columns, [...schemas]))
}

/** Kinds are case-insensitive. */
function schemaNamed(name: string): object {
  const kind = [...schemas.keys()].find((each) => each.toLowerCase() === name.toLowerCase())
  const schema = schemas.get(kind ?? name)
  if (schema !== undefined) return schema
  const like = nearest(name, [...schemas.keys()])
  throw new CliError(
    `no schema is named ${name}; ${like === undefined ? '' : `did you mean ${like}? `}tenon schema lists all`,
  )
}

function aboutOf(schema: object): string {
  return 'description' in schema ? String(schema.description) : ''
}
