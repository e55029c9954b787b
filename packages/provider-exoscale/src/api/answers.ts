/** Validates responses of Exoscale before their content is used. */
import { ownValue } from '@tenon/api'
import { type AnswerCheck, isFullText, isJsonFields, type JsonFields } from '@tenon/runtime'

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const operationStates: ReadonlySet<unknown> = new Set(['pending', 'success', 'failure', 'timeout'])

/** A list under `key`, which may be empty; each entry passes `isEntry`. */
export function listCheck(key: string, isEntry: (entry: JsonFields) => boolean = hasId): AnswerCheck {
  return (body) => {
    const list = isJsonFields(body) && Object.hasOwn(body, key) ? ownValue(body, key) : undefined
    if (!Array.isArray(list)) return `the answer has no list "${key}"`
    const isWhole = (list as readonly unknown[]).every((entry) => isJsonFields(entry) && isEntry(entry))
    return isWhole ? undefined : `an entry of "${key}" is not what it should be`
  }
}

/** The object with exactly this id. */
export function objectCheck(id: string): AnswerCheck {
  return (body) => {
    if (!isJsonFields(body) || body.id === undefined) return 'the answer has no id'
    return body.id === id ? undefined : `the answer is about ${String(body.id)}`
  }
}

/** The instance with this id, with labels, as they name its owner. */
export function instanceCheck(id: string): AnswerCheck {
  const isObject = objectCheck(id)
  return (body) =>
    isObject(body) ?? (isJsonFields(body) && isInstance(body) ? undefined : 'the answer is not an instance')
}

/** Whether an entry can be an instance. */
export function isInstance(entry: JsonFields): boolean {
  const { labels = {}, state, manager } = entry
  if (!hasId(entry) || !isJsonFields(labels) || !isManager(manager)) return false
  if (state !== undefined && typeof state !== 'string') return false
  return Object.values(labels).every((value) => typeof value === 'string')
}

/**
 * An asynchronous operation.
 * @param id of the operation, if known.
 * @param referenceId of the resource that it must be about, if known.
 */
export function operationCheck({
  id,
  referenceId,
}: {
  readonly id?: string
  readonly referenceId?: string
} = {}): AnswerCheck {
  return (body) => {
    if (!isJsonFields(body) || !hasId(body)) return 'the answer has no id of an operation'
    if (id !== undefined && body.id !== id) return `the answer is about operation ${String(body.id)}`
    if (!operationStates.has(body.state)) return `the answer has the state ${String(body.state)}`
    const { reference } = body
    if (reference === undefined || reference === null) return undefined
    if (!isJsonFields(reference)) return 'the reference of the answer is not an object'
    if (reference.id !== undefined && !isUuid(reference.id)) return 'the reference of the answer has no id'
    if (referenceId === undefined || reference.id === undefined || reference.id === referenceId)
      return undefined
    return `the answer is about ${String(reference.id)}`
  }
}

/**
 * The instance pool with this id. Only the pool of a nodepool may lack its size, as the API has no pool of size 0:
 * whether it is empty, its nodepool tells.
 */
export function poolCheck(id: string): AnswerCheck {
  const isObject = objectCheck(id)
  return (body) => isObject(body) ?? (isJsonFields(body) ? poolFault(body) : 'the answer is no instance pool')
}

function poolFault({ state, size, instances, manager }: JsonFields): string | undefined {
  if (typeof state !== 'string') return 'the answer has no state of an instance pool'
  if (!isManager(manager)) return 'the manager of the answer is not what it should be'
  if (size === undefined && mayBeEmpty(instances, manager)) return undefined
  if (typeof size !== 'number' || !Number.isInteger(size) || size < 0) return 'the answer has no size'
  // A pool without members has no list; a running pool with a size but without a list is an incomplete
  // response.
  if (instances === undefined && (size === 0 || state !== 'running')) return undefined
  const isWhole = Array.isArray(instances) && instances.every((each) => isJsonFields(each) && hasId(each))
  return isWhole ? undefined : 'the answer has no list "instances"'
}

function mayBeEmpty(instances: unknown, manager: unknown): boolean {
  const hasNone = instances === undefined || (Array.isArray(instances) && instances.length === 0)
  return hasNone && isJsonFields(manager) && manager.type === 'sks-nodepool'
}

/** Whether an entry can be an SKS cluster with its nodepools. */
export function isSksCluster(entry: JsonFields): boolean {
  const { nodepools = [] } = entry
  return hasId(entry) && Array.isArray(nodepools) && nodepools.every(isNodepool)
}

function isNodepool(entry: unknown): boolean {
  if (!isJsonFields(entry) || !hasId(entry)) return false
  const { size, name } = entry
  return (size === undefined || typeof size === 'number') && (name === undefined || typeof name === 'string')
}

function isManager(manager: unknown): boolean {
  return manager === undefined || (isJsonFields(manager) && hasId(manager))
}

/** The id of a template, under `active-template`. */
export const activeTemplateCheck: AnswerCheck = (body) =>
  isJsonFields(body) && isUuid(body['active-template']) ? undefined : 'the answer names no template'

export const quotaCheck: AnswerCheck = (body) =>
  isJsonFields(body) && typeof body.limit === 'number' ? undefined : 'the answer has no limit'

/** Whether a type has an id. Other invalid fields do not invalidate the list. */
export const hasTextId = ({ id }: JsonFields): boolean => isFullText(id)

/** Zones have names instead of ids. */
export const hasName = ({ name }: JsonFields): boolean => isFullText(name)

function hasId({ id }: JsonFields): boolean {
  return isUuid(id)
}

function isUuid(value: unknown): boolean {
  return typeof value === 'string' && uuid.test(value)
}
