/** Parses manifests, with positions of their fields. */
import type { UnstructuredObject } from '@tenon/api'
import { type Document, isMap, isSeq, type Node, Scalar, visit, type YAMLMap } from 'yaml'
import { readStream } from '../../yaml-text.ts'
import { positionOf } from './field-position.ts'
import type { Finding, Place, Problem } from './problem.ts'

/** An object with positions. */
export interface PlacedObject {
  readonly object: UnstructuredObject
  readonly file: string
  /** `NodePool default`. */
  readonly title: string
  /** The position of a field, or of its nearest parent that is written. */
  readonly placeOf: (field: string) => Place
  /** Values that kubectl reads differently. */
  readonly misread: readonly Problem[]
}

export interface ReadText {
  readonly objects: readonly PlacedObject[]
  /** Syntax errors, and documents that are not Kubernetes objects. */
  readonly problems: readonly Problem[]
  /** Objects without a name that are not Karpenter's, such as a Kustomization. */
  readonly skipped: number
}

/** Parses a YAML stream or JSON. */
export function readText(file: string, text: string): ReadText {
  const { documents, placeOf } = readStream(text)
  const place = (offset: number): Place => ({ file, ...placeOf(offset) })
  let skipped = 0
  const objects: PlacedObject[] = []
  const problems: Problem[] = []
  const wrong = (offset: number, message: string, fix?: string): void => {
    problems.push({ ...place(offset), severity: 'error', field: '', message, ...(fix && { fix }) })
  }
  const readNode = (document: Document, node: Node): void => {
    const value = valueOf(document, node)
    if (value === null) return
    if (value instanceof Error) {
      wrong(node.range?.[0] ?? 0, `not valid YAML: ${value.message}`)
      return
    }
    if (!isMap(node)) {
      wrong(node.range?.[0] ?? 0, 'not a Kubernetes object', 'expected the fields apiVersion, kind, metadata')
      return
    }
    const items = itemsOf(node, value)
    if (items !== undefined) {
      for (const item of items) readNode(document, item)
      return
    }
    const missing = missingField(value as Partial<UnstructuredObject>)
    if (missing?.startsWith('metadata') === true && !isKarpenters(value)) {
      skipped++
      return
    }
    if (missing !== undefined) {
      wrong(node.range?.[0] ?? 0, `field ${missing} is missing`)
      return
    }
    const object = value as UnstructuredObject
    const { name, generateName } = object.metadata as { name?: string; generateName?: string }
    const title = `${object.kind} ${name ?? `${generateName}…`}`
    objects.push({
      object,
      file,
      title,
      misread: booleanWords(node).map(({ offset, word }) => ({
        ...place(offset),
        severity: 'warning',
        object: title,
        field: '',
        message: `kubectl reads ${word} as a boolean`,
        fix: 'quote it if you mean a string',
      })),
      placeOf: (field) => place(positionOf(node, field)),
    })
  }
  for (const { document, error, repeatedKeys } of documents) {
    if (error !== undefined) wrong(error.offset, `not valid YAML: ${error.message}`)
    else if (document.contents !== null) readNode(document, document.contents)
    for (const { offset, key } of repeatedKeys) {
      const message = `key ${JSON.stringify(key)} is already set in this map; the last one is used`
      problems.push({
        ...place(offset),
        severity: 'warning',
        field: '',
        message,
        fix: 'remove one of the two',
      })
    }
  }
  return { objects, problems, skipped }
}

/** Adds positions to findings. */
export function placed({ title, placeOf }: PlacedObject, findings: readonly Finding[]): readonly Problem[] {
  return findings.map((finding) => ({ ...placeOf(finding.field), object: title, ...finding }))
}

/** The value of a node; an error for undefined aliases and for those that expand without limit. */
function valueOf(document: Document, node: Node): unknown {
  try {
    return node.toJS(document)
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error))
  }
}

function isKarpenters(value: unknown): boolean {
  return String((value as { readonly apiVersion?: unknown }).apiVersion).startsWith('karpenter.')
}

function itemsOf(node: YAMLMap, value: unknown): readonly Node[] | undefined {
  const { kind, items } = value as { readonly kind?: unknown; readonly items?: unknown }
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return undefined
  const list: unknown = node.get('items', true)
  return isSeq(list) ? (list.items as readonly Node[]) : undefined
}

/** Unquoted words that are booleans in YAML 1.1, which kubectl reads, and strings in YAML 1.2. */
function booleanWords(root: Node): readonly { readonly offset: number; readonly word: string }[] {
  const found: { readonly offset: number; readonly word: string }[] = []
  visit(root, {
    Scalar: (key, { type, value, range }) => {
      const isWord = typeof value === 'string' && /^(yes|no|on|off)$/i.test(value)
      if (isWord && type === Scalar.PLAIN && key !== 'key')
        found.push({ offset: range?.[0] ?? 0, word: value })
    },
  })
  return found
}

function missingField(object: Partial<UnstructuredObject>): string | undefined {
  if (typeof object.apiVersion !== 'string') return 'apiVersion'
  if (typeof object.kind !== 'string') return 'kind'
  const metadata = object.metadata as { readonly name?: unknown; readonly generateName?: unknown } | undefined
  if (typeof metadata !== 'object' || metadata === null) return 'metadata'
  const isNamed = typeof metadata.name === 'string' || typeof metadata.generateName === 'string'
  return isNamed ? undefined : 'metadata.name'
}
