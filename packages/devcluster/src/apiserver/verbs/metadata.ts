import { type ObjectMeta, ownValue } from '@tenon/api'
import type { FieldError, StoredObject } from '../../contract.ts'
import { sameJson } from '../equality.ts'

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/
const labelName = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/
const annotationsLimitBytes = 256 * 1024

/** Prefixes of generated names are truncated, so that the names are valid labels. */
const generatedPrefixLimit = 58
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789'
export const generatedSuffix = { length: 5, alphabet: suffixAlphabet } as const

/** A name made from a prefix and a random suffix. */
export function generatedName(prefix: string, suffix: string): string {
  return prefix.slice(0, generatedPrefixLimit) + suffix
}

/** Validates the metadata of a custom resource. Values of `old`, the stored metadata, are valid. */
export function validateMetadata(meta: ObjectMeta, old?: ObjectMeta): FieldError[] {
  if (meta === old) return []
  return [
    ...validateName(meta.name),
    ...(meta.labels === old?.labels ? [] : validateLabels(meta.labels ?? {})),
    ...(meta.annotations === old?.annotations ? [] : validateAnnotations(meta.annotations ?? {})),
    ...validateFinalizers(meta.finalizers ?? []),
    ...(meta.ownerReferences === old?.ownerReferences ? [] : validateOwners(meta)),
  ]
}

function validateName(name: string | undefined): FieldError[] {
  if (!name) return [{ field: 'metadata.name', kind: 'required', detail: 'name or generateName is required' }]
  if (name.length <= 253 && subdomain.test(name)) return []
  const detail =
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
  return [{ field: 'metadata.name', kind: 'invalid', value: name, detail }]
}

/** Whether a text is a valid label key (`example.com/name` or `name`). */
export function isQualifiedName(key: string): boolean {
  const slash = key.indexOf('/')
  const name = key.slice(slash + 1)
  if (slash >= 0 && (slash === 0 || slash > 253 || !subdomain.test(key.slice(0, slash)))) return false
  return name.length <= 63 && labelName.test(name)
}

function validateLabels(labels: Readonly<Record<string, string>>): FieldError[] {
  const errors: FieldError[] = []
  const field = 'metadata.labels'
  for (const [key, value] of Object.entries(labels)) {
    if (!isQualifiedName(key)) errors.push({ field, kind: 'invalid', value: key, detail: nameForm })
    if (typeof value !== 'string' || value.length > 63 || (value !== '' && !labelName.test(value)))
      errors.push({ field, kind: 'invalid', value, detail: valueForm })
  }
  return errors
}

const nameForm =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc')"
const valueForm =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345')"

function validateAnnotations(annotations: Readonly<Record<string, string>>): FieldError[] {
  const errors: FieldError[] = []
  let bytes = 0
  for (const [key, value] of Object.entries(annotations)) {
    bytes += key.length + value.length
    if (!isQualifiedName(key.toLowerCase()))
      errors.push({ field: 'metadata.annotations', kind: 'invalid', value: key, detail: nameForm })
  }
  if (bytes > annotationsLimitBytes)
    errors.push({
      field: 'metadata.annotations',
      kind: 'tooLong',
      detail: `may not be more than ${annotationsLimitBytes} bytes`,
    })
  return errors
}

function validateFinalizers(finalizers: readonly string[]): FieldError[] {
  return finalizers
    .filter((finalizer) => !isQualifiedName(finalizer))
    .map((value) => ({ field: 'metadata.finalizers', kind: 'invalid', value, detail: nameForm }))
}

function validateOwners(meta: ObjectMeta): FieldError[] {
  const errors: FieldError[] = []
  const owners = meta.ownerReferences ?? []
  for (const [index, owner] of owners.entries()) {
    for (const part of ['apiVersion', 'kind', 'name', 'uid'] as const) {
      if (typeof owner[part] !== 'string' || owner[part] === '')
        errors.push({
          field: `metadata.ownerReferences[${index}].${part}`,
          kind: 'invalid',
          value: owner[part] ?? '',
          detail: 'must not be empty',
        })
    }
  }
  if (owners.filter((owner) => owner.controller === true).length > 1)
    errors.push({
      field: 'metadata.ownerReferences',
      kind: 'invalid',
      value: owners,
      detail: 'Only one reference can have Controller set to true',
    })
  return errors
}

/** The metadata after an update: fields of the server do not change. */
export function updatedMetadata(next: ObjectMeta, old: ObjectMeta): ObjectMeta {
  if (next === old) return old
  return withoutEmpty({
    ...next,
    ...serverFields(old),
    // Clients can neither remove nor add what the server sets.
    deletionTimestamp: old.deletionTimestamp,
    deletionGracePeriodSeconds: old.deletionGracePeriodSeconds,
    generation: old.generation,
    generateName: old.generateName,
    resourceVersion: old.resourceVersion,
  })
}

function serverFields(old: ObjectMeta): Partial<ObjectMeta> {
  return {
    name: old.name,
    ...(old.namespace === undefined ? {} : { namespace: old.namespace }),
    ...(old.uid === undefined ? {} : { uid: old.uid }),
    ...(old.creationTimestamp === undefined ? {} : { creationTimestamp: old.creationTimestamp }),
  }
}

type LooseMeta = { readonly [Field in keyof ObjectMeta]: ObjectMeta[Field] | undefined | null }

/** Removes absent and empty fields, so that equal metadata has one form; but never the name. */
export function withoutEmpty(meta: LooseMeta): ObjectMeta {
  const kept = Object.entries(meta).filter(
    ([key, value]) =>
      key === 'name' || (value !== undefined && value !== null && value !== '' && !isEmpty(value)),
  )
  return Object.fromEntries(kept) as unknown as ObjectMeta
}

function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0
}

/** Errors of metadata changes that an update may not make. */
export function validateMetadataUpdate(next: ObjectMeta, old: ObjectMeta): FieldError[] {
  if (old.deletionTimestamp === undefined) return []
  const added = (next.finalizers ?? []).filter((finalizer) => !(old.finalizers ?? []).includes(finalizer))
  if (added.length === 0) return []
  return [
    {
      field: 'metadata.finalizers',
      kind: 'forbidden',
      detail: `no new finalizers can be added if the object is being deleted, found new finalizers ${JSON.stringify(added)}`,
    },
  ]
}

const besidesSpec: ReadonlySet<string> = new Set(['metadata', 'status', 'apiVersion', 'kind'])

/** Whether anything but metadata and status differs. */
export function specChanged(next: StoredObject, old: StoredObject): boolean {
  return !sameFieldsBut(besidesSpec, next, old)
}

const recordKeeping: ReadonlySet<string> = new Set(['managedFields', 'resourceVersion'])
const onlyMetadata: ReadonlySet<string> = new Set(['metadata'])

/** Whether an update changes nothing, apart from managed fields and versions. */
export function sameContent(next: StoredObject, old: StoredObject): boolean {
  if (!sameFieldsBut(onlyMetadata, next, old)) return false
  const [meta, oldMeta] = [next.metadata, old.metadata] as unknown as Readonly<Record<string, unknown>>[]
  return meta === oldMeta || sameFieldsBut(recordKeeping, meta ?? {}, oldMeta ?? {})
}

function sameFieldsBut(
  left: ReadonlySet<string>,
  a: Readonly<Record<string, unknown>>,
  b: Readonly<Record<string, unknown>>,
): boolean {
  for (const field in a)
    if (!left.has(field) && !sameJson(ownValue(a, field), ownValue(b, field))) return false
  for (const field in b)
    if (ownValue(b, field) !== undefined && ownValue(a, field) === undefined && !left.has(field)) return false
  return true
}
