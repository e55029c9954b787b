/** Prints objects for programs: `-o json|yaml|name|jsonpath=|custom-columns=`. */
import type { KubeObject } from '@tenon/api'
import { stringify } from 'yaml'
import { KubectlError } from '../../errors.ts'
import { plainText, renderTemplate, valuesAt } from '../jsonpath/evaluate.ts'
import { JsonPathError } from '../jsonpath/template.ts'
import type { CustomColumn, ObjectFormat } from './format.ts'
import { TableWriter } from './table.ts'

export interface Printed {
  readonly objects: readonly KubeObject[]
  /** Print a `List`, even for one object: no single object was asked for by name. */
  readonly isList: boolean
  /** `node/a`, for `-o name`. */
  readonly nameOf: (object: KubeObject) => string
  readonly noHeaders?: boolean
}

/** @throws KubectlError if a template does not fit the objects. */
export function printObjects(out: (text: string) => void, format: ObjectFormat, printed: Printed): void {
  const { objects, nameOf } = printed
  switch (format.kind) {
    case 'json':
      out(`${JSON.stringify(whole(printed), null, 4)}\n`)
      return
    case 'yaml':
      out(yamlText(whole(printed)))
      return
    case 'name':
      for (const object of objects) out(`${nameOf(object)}\n`)
      return
    case 'jsonpath':
      out(withoutMisfit('jsonpath', () => renderTemplate(format.template, whole(printed))))
      return
    case 'custom-columns':
      new TableWriter(out).write(withoutMisfit('custom-columns', () => customLines(format.columns, printed)))
      return
  }
}

/** Quotes strings that another YAML parser could misread; never folds lines. */
function yamlText(value: unknown): string {
  return stringify(value, { lineWidth: 0, version: '1.1', compat: 'yaml-1.1', aliasDuplicateObjects: false })
}

/** The single object, or a list. */
function whole({ objects, isList }: Printed): unknown {
  const [only] = objects
  if (!isList && objects.length === 1) return only
  return { apiVersion: 'v1', items: objects, kind: 'List', metadata: { resourceVersion: '' } }
}

function customLines(
  columns: readonly CustomColumn[],
  { objects, noHeaders }: Printed,
): readonly (readonly string[])[] {
  const lines = objects.map((object) => columns.map(({ path }) => customCell(valuesAt(object, path))))
  return noHeaders === true ? lines : [columns.map(({ title }) => title), ...lines]
}

function customCell(values: readonly unknown[]): string {
  return values.length === 0 ? '<none>' : values.map(plainText).join(',')
}

function withoutMisfit<T>(format: string, render: () => T): T {
  try {
    return render()
  } catch (cause) {
    if (!(cause instanceof JsonPathError)) throw cause
    throw new KubectlError(`error: -o ${format}: ${cause.message}`, { cause })
  }
}
