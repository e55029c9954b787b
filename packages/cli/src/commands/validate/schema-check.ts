/** Checks what the API server would reject: unknown fields, schema, CEL rules. */
import { nearest, type UnstructuredObject } from '@tenon/api'
import type { FieldError } from '@tenon/devcluster'
import { type CrdChecker, createCrdChecker, fieldErrorText } from '@tenon/devcluster/crd-checker'
import { formerField, formerValue } from './former-kinds.ts'
import type { Finding } from './problem.ts'

/** The fields of a CustomResourceDefinition that are used here. */
interface Crd {
  readonly spec: {
    readonly names: { readonly kind: string }
    readonly versions: readonly { readonly schema: { readonly openAPIV3Schema: Schema } }[]
  }
}

interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
}

/** An object as the API server would store it, and why it would not. */
export interface SchemaCheck {
  readonly stored: UnstructuredObject
  readonly findings: readonly Finding[]
}

export class SchemaChecker {
  readonly #checker: CrdChecker
  readonly #fieldsByKind: ReadonlyMap<string, readonly string[]>

  constructor(crds: readonly object[]) {
    this.#checker = createCrdChecker(crds)
    this.#fieldsByKind = new Map(
      (crds as readonly Crd[]).map(({ spec }) => [
        spec.names.kind,
        spec.versions.flatMap(({ schema }) => fieldsOf(schema.openAPIV3Schema, '')),
      ]),
    )
  }

  /** Undefined if no definition serves this version of the kind. */
  check(given: UnstructuredObject): SchemaCheck | undefined {
    const name = given.metadata.name ?? `${given.metadata.generateName ?? ''}x`
    const named = { ...given, metadata: { ...given.metadata, name } }
    const checked = this.#checker.check(named)
    if (checked === undefined) return undefined
    const unknown = checked.unknownFields.map((field) => this.#unknownField(given.kind, field))
    const errors = checked.errors.map(findingOf)
    return { stored: checked.object, findings: [...unknown, ...errors] }
  }

  #unknownField(kind: string, field: string): Finding {
    const bare = field.replaceAll(/\[\d+\]/g, '[]')
    const fix = formerField(kind, bare) ?? this.#suggestion(kind, bare)
    return { severity: 'error', field, message: 'unknown field', ...(fix !== undefined && { fix }) }
  }

  /** A field of this name elsewhere in the kind, or a sibling with a similar name. */
  #suggestion(kind: string, field: string): string | undefined {
    const known = this.#fieldsByKind.get(kind) ?? []
    const parent = field.slice(0, field.lastIndexOf('.') + 1)
    const name = field.slice(parent.length)
    const siblings = known
      .filter((each) => each.startsWith(parent) && !each.slice(parent.length).includes('.'))
      .map((each) => each.slice(parent.length))
    const near = nearest(name, siblings)
    if (near !== undefined) return `did you mean ${near}?`
    const elsewhere = known.find((each) => each.endsWith(`.${name}`) && !each.startsWith('status.'))
    return elsewhere === undefined ? undefined : `there is ${elsewhere}`
  }
}

function fieldsOf(schema: Schema, path: string): readonly string[] {
  const own = Object.entries(schema.properties ?? {}).flatMap(([name, property]) => {
    const field = path === '' ? name : `${path}.${name}`
    return [field, ...fieldsOf(property, field)]
  })
  return schema.items === undefined ? own : [...own, ...fieldsOf(schema.items, `${path}[]`)]
}

/** Patterns of the schemas in words. */
const forms: readonly (readonly [part: string, words: string])[] = [
  ['|Never)$', 'write a duration in hours, minutes and seconds, such as 30s, 1h30m or 720h, or Never'],
  ["'^([0-9]+(s|m|h))+$'", 'write a duration in hours, minutes and seconds, such as 30s, 1h30m or 720h'],
  ['(100|[0-9]{1,2})%|[0-9]+', 'write a number of nodes or a percentage in quotes, such as "5" or "10%"'],
  ['annually|yearly', 'write five cron fields in quotes, such as "0 9 * * mon-fri", or @daily'],
  ['([0-9]+(h|m))', 'write hours and minutes, such as 8h or 1h30m'],
  ['\\d+(\\.\\d+)?$', 'write a price per hour such as "0.25", without sign or unit'],
  ['-100%', 'write a sign and a number, such as +0.1, -0.1, +10% or -50%'],
  ['[KMGTPE]i', 'write a quantity such as "1500m", "4" or 8Gi; fractions need quotes'],
  ["'^[^/]*$'", 'write the API group without its version'],
]

function findingOf(error: FieldError): Finding {
  const { field } = error
  if (field === '')
    return { severity: 'warning', field, message: 'some rules are checked only once the errors are fixed' }
  const text = fieldErrorText(error).slice(`${field}: `.length).replace(`${field} in body `, '')
  const form = forms.find(([part]) => text.includes(part))?.[1]
  const fix = formerValue(field, error.value) ?? form ?? typeFix(error)
  const message = typeMessage(error) ?? (form === undefined ? text : text.replace(/: should match .*$/, ''))
  return { severity: 'error', field, message: lowered(message), ...(fix !== undefined && { fix }) }
}

function typeMessage({ kind, detail }: FieldError): string | undefined {
  const [, wanted, given] = /must be of type ([\w,]+): "(\w+)"$/.exec(detail) ?? []
  if (kind !== 'typeInvalid' || wanted === undefined) return undefined
  return `must be of type ${wanted.replace(',', ' or ')}, not ${given}`
}

function lowered(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1)
}

/** Numbers in place of strings are the most frequent mistake in YAML. */
function typeFix({ kind, detail }: FieldError): string | undefined {
  if (kind !== 'typeInvalid') return undefined
  if (/type string: "(integer|number|boolean)"/.test(detail)) return 'put the value in quotes'
  if (/type integer,string: "number"/.test(detail)) return 'put the value in quotes'
  return /type integer: "string"/.test(detail) ? 'write the number without quotes' : undefined
}
