/** Validates responses of the API server before their content is used. */
import { apiVersionOf, type KubeObject, type ResourceType } from '@tenon/api'
import { type AnswerCheck, isFullText, isJsonFields, type JsonFields } from '@tenon/runtime'
import type { ObjectKey } from '../contract.ts'

/** One object of the type; with `key`, exactly that one. */
export function objectCheck(type: ResourceType, key?: Partial<ObjectKey>): AnswerCheck {
  return (body) => {
    if (!isJsonFields(body)) return `the answer is ${formOf(body)} instead of a ${type.kind}`
    if (!isOfType(body, type, type.kind)) return `the answer is a ${kindOf(body)} instead of a ${type.kind}`
    const { metadata } = body
    if (!isJsonFields(metadata) || !isFullText(metadata.name))
      return `the answer has no metadata.name, which a ${type.kind} has`
    if (key?.name !== undefined && metadata.name !== key.name)
      return `the answer is about ${type.kind} ${metadata.name} instead of ${key.name}`
    if (key?.namespace !== undefined && type.namespaced && (metadata.namespace ?? '') !== key.namespace)
      return `the answer is about namespace ${String(metadata.namespace)} instead of ${key.namespace}`
    return undefined
  }
}

/** A page of a list of the type, with items and a version. */
export function listCheck(type: ResourceType): AnswerCheck {
  const wanted = `${type.kind}List`
  return (body) => {
    if (!isJsonFields(body)) return `the answer is ${formOf(body)} instead of a ${wanted}`
    const { kind, items, metadata } = body
    if (kind !== undefined && kind !== wanted && kind !== 'List')
      return `the answer is a ${kindOf(body)} instead of a ${wanted}`
    if (!isJsonFields(metadata) || !isFullText(metadata.resourceVersion))
      return 'the answer has no metadata.resourceVersion, which a list has'
    const { continue: next } = metadata
    if (next !== undefined && typeof next !== 'string') return 'metadata.continue of the list is not a string'
    // Some Go servers write an empty list as null.
    if (items === null && kind !== undefined) return undefined
    if (!Array.isArray(items)) return 'the answer has no items, which a list has'
    const isWhole = (items as readonly unknown[]).every(
      (item) =>
        isJsonFields(item) &&
        isJsonFields(item.metadata) &&
        isFullText(item.metadata.name) &&
        isOfType(item, type, type.kind),
    )
    return isWhole ? undefined : `an item of the list is no ${type.kind} with a name`
  }
}

/** The response to a deletion: the object with its deletionTimestamp, or a Status. */
export function deletionCheck(type: ResourceType, key: ObjectKey): AnswerCheck {
  const isObject = objectCheck(type, key)
  return (body) => (isJsonFields(body) && body.kind === 'Status' ? successCheck(body) : isObject(body))
}

/** A Status of success. */
export const successCheck: AnswerCheck = (body) => {
  if (!isJsonFields(body) || body.kind !== 'Status')
    return `the answer is ${formOf(body)} instead of a Status`
  return body.status === 'Success' ? undefined : `the answer is a Status that says ${String(body.status)}`
}

/** Any JSON object. */
export const jsonCheck: AnswerCheck = (body) =>
  isJsonFields(body) ? undefined : `the answer is ${formOf(body)} instead of an object`

/** The version of the server. */
export const versionCheck: AnswerCheck = (body) =>
  isJsonFields(body) && isFullText(body.gitVersion) ? undefined : 'the answer has no gitVersion'

/** Whether the object of a watch event has the watched type. */
export function isWatched(object: KubeObject, type: ResourceType): boolean {
  return isOfType(object as unknown as JsonFields, type, type.kind)
}

/** Items of lists have no kind of their own, and neither have stored objects of old servers. */
function isOfType({ kind, apiVersion }: JsonFields, type: ResourceType, wanted: string): boolean {
  if (kind !== undefined && kind !== wanted) return false
  return apiVersion === undefined || apiVersion === apiVersionOf(type)
}

function kindOf({ kind, apiVersion }: JsonFields): string {
  return [apiVersion, kind].filter((part) => typeof part === 'string').join(' ')
}

function formOf(body: unknown): string {
  if (body === null) return 'null'
  if (Array.isArray(body)) return 'a bare list'
  return typeof body === 'object' ? 'another object' : `a ${typeof body}`
}
