import { isRecord } from '@tenon/api'
import type { FieldError, StoredObject } from '../../contract.ts'
import { jsonEqual } from '../shape-node.ts'

/** The name format of a kind. */
export type NameRule = 'subdomain' | 'label' | 'label1035' | 'path' | 'any'

const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/
const label1035 = /^[a-z]([-a-z0-9]*[a-z0-9])?$/
const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const qualifiedPart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/

const labelWords =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with " +
  "an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
const label1035Words =
  "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, " +
  "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is " +
  "'[a-z]([-a-z0-9]*[a-z0-9])?')"
const subdomainWords =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and " +
  "end with an alphanumeric character (e.g. 'example.com', regex used for validation is " +
  "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
const namePartWords =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric " +
  "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is " +
  "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
const labelValueWords =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and " +
  "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is " +
  "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"

function tooLong(bound: number): string {
  return `must be no more than ${bound} characters`
}

/** Why a name is not a DNS label; empty if it is. */
export function dnsLabelErrors(name: string): readonly string[] {
  return [...(name.length > 63 ? [tooLong(63)] : []), ...(label.test(name) ? [] : [labelWords])]
}

/** Why a name violates a rule; empty if it does not. */
export function nameErrors(name: string, rule: NameRule): readonly string[] {
  switch (rule) {
    case 'label':
      return dnsLabelErrors(name)
    case 'label1035':
      return [...(name.length > 63 ? [tooLong(63)] : []), ...(label1035.test(name) ? [] : [label1035Words])]
    case 'any':
      return []
    case 'path':
      if (name === '.' || name === '..') return [`may not be '${name}'`]
      return name.includes('/') ? ["may not contain '/'"] : name.includes('%') ? ["may not contain '%'"] : []
    case 'subdomain':
      return [...(name.length > 253 ? [tooLong(253)] : []), ...(subdomain.test(name) ? [] : [subdomainWords])]
  }
}

/** Why a text is not a label or annotation key (`domain/name`); empty if it is. */
export function qualifiedNameErrors(key: string): readonly string[] {
  const cached = goodKeys.has(key)
  if (cached) return []
  const parts = key.split('/')
  const errors: string[] = []
  if (parts.length > 2) {
    return [
      `a qualified name ${namePartWords.slice('name part '.length)} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')`,
    ]
  }
  const prefix = parts.length === 2 ? parts[0] : undefined
  const name = parts.at(-1) ?? ''
  if (prefix === '') errors.push('prefix part must be non-empty')
  else if (prefix !== undefined)
    errors.push(...nameErrors(prefix, 'subdomain').map((words) => `prefix part ${words}`))
  if (name === '') errors.push('name part must be non-empty')
  if (name.length > 63) errors.push(`name part ${tooLong(63)}`)
  if (!qualifiedPart.test(name)) errors.push(namePartWords)
  if (errors.length === 0) remember(goodKeys, key)
  return errors
}

const goodKeys = new Set<string>()
const goodValues = new Set<string>()
/** Limit of both caches; label keys and values repeat often. */
const maxRemembered = 10_000

function remember(set: Set<string>, text: string): void {
  if (set.size >= maxRemembered) set.clear()
  set.add(text)
}

/** Why a text is not a label value; empty if it is. */
export function labelValueErrors(value: string): readonly string[] {
  if (goodValues.has(value)) return []
  const errors = [
    ...(value.length > 63 ? [tooLong(63)] : []),
    ...(value === '' || qualifiedPart.test(value) ? [] : [labelValueWords]),
  ]
  if (errors.length === 0) remember(goodValues, value)
  return errors
}

/** Checks a map of labels. */
export function labelErrors(labels: unknown, path: string): readonly FieldError[] {
  if (!isRecord(labels)) return []
  const errors: FieldError[] = []
  for (const [key, value] of Object.entries(labels)) {
    for (const detail of qualifiedNameErrors(key))
      errors.push({ kind: 'invalid', field: path, value: key, detail })
    if (typeof value !== 'string') continue
    for (const detail of labelValueErrors(value)) errors.push({ kind: 'invalid', field: path, value, detail })
  }
  return errors
}

/** Annotation keys are validated like lower-cased label keys; their total size is limited. */
function annotationErrors(annotations: unknown, path: string): readonly FieldError[] {
  if (!isRecord(annotations)) return []
  const errors: FieldError[] = []
  let size = 0
  for (const [key, value] of Object.entries(annotations)) {
    for (const detail of qualifiedNameErrors(key.toLowerCase())) {
      errors.push({ kind: 'invalid', field: path, value: key, detail })
    }
    size += key.length + (typeof value === 'string' ? value.length : 0)
  }
  if (size > maxAnnotationBytes) {
    errors.push({ kind: 'tooLong', field: path, detail: `may not be more than ${maxAnnotationBytes} bytes` })
  }
  return errors
}

/** Validates the metadata of a template. */
export function templateMetadataErrors(
  metadata: Readonly<Record<string, unknown>> | undefined,
  path: string,
): readonly FieldError[] {
  return [
    ...labelErrors(metadata?.['labels'], `${path}.labels`),
    ...annotationErrors(metadata?.['annotations'], `${path}.annotations`),
  ]
}

const maxAnnotationBytes = 262_144

/** Immutable metadata fields. */
const immutableFields = ['name', 'namespace', 'uid', 'creationTimestamp'] as const

/**
 * Validates an object's metadata. `old` is given for an update; with `knowsFinalizers`, finalizers without a domain
 * must be Kubernetes' own.
 */
export function metadataErrors(
  object: StoredObject,
  old: StoredObject | undefined,
  rule: NameRule,
  knowsFinalizers: boolean,
): readonly FieldError[] {
  const metadata = object.metadata
  if (old !== undefined && metadata === old.metadata) return []
  const errors: FieldError[] = []
  if (typeof metadata.name !== 'string' || metadata.name === '') {
    const detail = 'name or generateName is required'
    errors.push({ kind: 'required', field: 'metadata.name', detail })
  } else if (old === undefined) {
    for (const detail of nameErrors(metadata.name, rule)) {
      errors.push({ kind: 'invalid', field: 'metadata.name', value: metadata.name, detail })
    }
  }
  if (metadata.labels !== old?.metadata.labels)
    errors.push(...labelErrors(metadata.labels, 'metadata.labels'))
  if (metadata.annotations !== old?.metadata.annotations) {
    errors.push(...annotationErrors(metadata.annotations, 'metadata.annotations'))
  }
  errors.push(...finalizerErrors(metadata.finalizers, knowsFinalizers), ...ownerErrors(object))
  if (old !== undefined) errors.push(...immutableErrors(object, old))
  return errors
}

/** Kubernetes' own finalizers, the only ones without a domain. */
const standardFinalizers: ReadonlySet<unknown> = new Set(['kubernetes', 'orphan', 'foregroundDeletion'])

/** Why a text is not a finalizer; empty if it is. */
export function finalizerNameErrors(value: unknown): readonly string[] {
  if (typeof value !== 'string') return []
  const errors = qualifiedNameErrors(value)
  if (errors.length > 0 || value.includes('/') || standardFinalizers.has(value)) return errors
  return ['name is neither a standard finalizer name nor is it fully qualified']
}

function finalizerErrors(finalizers: unknown, knowsFinalizers: boolean): readonly FieldError[] {
  if (!Array.isArray(finalizers)) return []
  return finalizers.flatMap((value: unknown, index) => {
    const malformed = typeof value === 'string' ? qualifiedNameErrors(value) : []
    // A well-formed finalizer that is not Kubernetes' own is reported with its index.
    const field = malformed.length > 0 ? 'metadata.finalizers' : `metadata.finalizers[${index}]`
    const words = knowsFinalizers ? finalizerNameErrors(value) : malformed
    return words.map((detail): FieldError => ({ kind: 'invalid', field, value, detail }))
  })
}

function ownerErrors(object: StoredObject): readonly FieldError[] {
  const errors: FieldError[] = []
  let controllers = 0
  for (const [index, owner] of (object.metadata.ownerReferences ?? []).entries()) {
    const path = `metadata.ownerReferences[${index}]`
    for (const field of ['apiVersion', 'kind', 'name', 'uid'] as const) {
      if (owner[field] !== '') continue
      errors.push({ kind: 'invalid', field: `${path}.${field}`, value: '', detail: 'must not be empty' })
    }
    if (owner.controller === true) controllers++
  }
  if (controllers > 1) {
    const detail = 'Only one reference can have Controller set to true'
    errors.push({
      kind: 'invalid',
      field: 'metadata.ownerReferences',
      value: object.metadata.ownerReferences,
      detail,
    })
  }
  return errors
}

function immutableErrors(object: StoredObject, old: StoredObject): readonly FieldError[] {
  return immutableFields.flatMap((field): FieldError[] => {
    const before = old.metadata[field]
    const now = object.metadata[field]
    if (now === undefined || before === undefined || jsonEqual(now, before)) return []
    return [{ kind: 'invalid', field: `metadata.${field}`, value: now, detail: 'field is immutable' }]
  })
}
