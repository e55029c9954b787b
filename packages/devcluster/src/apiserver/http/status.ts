import type { Status } from '@tenon/api'
import { ApiError, type FieldError } from '../../contract.ts'
import { fieldCauses, fieldErrorsMessage } from '../../schema/index.ts'

/** The resource in a failure's message and details. */
export interface Subject {
  readonly group: string
  /** Plural resource name (`pods`). */
  readonly plural: string
  readonly kind: string
}

type Details = NonNullable<Status['details']>

/** A failure as a Status; all other functions here call it. */
export function failure(code: number, reason: string, message: string, details?: Details): ApiError {
  return new ApiError({
    apiVersion: 'v1',
    kind: 'Status',
    metadata: {},
    status: 'Failure',
    message,
    reason,
    ...(details === undefined ? {} : { details }),
    code,
  })
}

/** `deployments.apps`, as in messages. */
export function qualified(subject: Pick<Subject, 'group' | 'plural'>): string {
  return subject.group === '' ? subject.plural : `${subject.plural}.${subject.group}`
}

function detailsOf(subject: Subject, name: string, more: Details = {}): Details {
  return {
    ...(name === '' ? {} : { name }),
    ...(subject.group === '' ? {} : { group: subject.group }),
    kind: subject.plural,
    ...more,
  }
}

export function notFound(subject: Subject, name: string): ApiError {
  return failure(404, 'NotFound', `${qualified(subject)} "${name}" not found`, detailsOf(subject, name))
}

/** The path does not exist. */
export function noSuchPath(): ApiError {
  return failure(404, 'NotFound', 'the server could not find the requested resource', {})
}

export function alreadyExists(subject: Subject, name: string): ApiError {
  const message = `${qualified(subject)} "${name}" already exists`
  return failure(409, 'AlreadyExists', message, detailsOf(subject, name))
}

export function conflict(subject: Subject, name: string, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${qualified(subject)} "${name}": ${why}`
  return failure(409, 'Conflict', message, detailsOf(subject, name))
}

/** An update based on an outdated object. */
export function staleUpdate(subject: Subject, name: string): ApiError {
  return conflict(
    subject,
    name,
    'the object has been modified; please apply your changes to the latest version and try again',
  )
}

export function invalid(subject: Subject, name: string, errors: readonly FieldError[]): ApiError {
  return failure(422, 'Invalid', fieldErrorsMessage(qualifiedKind(subject), name, errors), {
    ...(name === '' ? {} : { name }),
    ...(subject.group === '' ? {} : { group: subject.group }),
    kind: subject.kind,
    causes: fieldCauses(errors),
  })
}

function qualifiedKind(subject: Subject): string {
  return subject.group === '' ? subject.kind : `${subject.kind}.${subject.group}`
}

export function badRequest(message: string): ApiError {
  return failure(400, 'BadRequest', message)
}

export function unauthorized(): ApiError {
  return failure(401, 'Unauthorized', 'Unauthorized')
}

export function forbidden(subject: Subject, name: string, why: string, causes?: Details['causes']): ApiError {
  return failure(
    403,
    'Forbidden',
    `${qualified(subject)} ${name === '' ? '' : `"${name}" `}is forbidden: ${why}`,
    detailsOf(subject, name, causes === undefined ? {} : { causes }),
  )
}

/** The requested history was compacted. */
export function expired(message: string): ApiError {
  return failure(410, 'Expired', message)
}

export function methodNotAllowed(): ApiError {
  return failure(
    405,
    'MethodNotAllowed',
    'the server does not allow this method on the requested resource',
    {},
  )
}

export function unsupportedMediaType(accepted: readonly string[]): ApiError {
  const message = `the body of the request was in an unknown format - accepted media types include: ${accepted.join(', ')}`
  return failure(415, 'UnsupportedMediaType', message, {})
}

export function notAcceptable(accepted: readonly string[]): ApiError {
  const message = `only the following media types are accepted: ${accepted.join(', ')}`
  return failure(406, 'NotAcceptable', message, {})
}

/** A revision in the future. */
export function tooLargeResourceVersion(asked: number, current: number): ApiError {
  return failure(504, 'Timeout', `Too large resource version: ${asked}, current: ${current}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  })
}

export function tooManyRequests(message: string, causes: Details['causes']): ApiError {
  return failure(429, 'TooManyRequests', message, causes === undefined ? {} : { causes })
}

export function internalError(message: string): ApiError {
  return failure(500, 'InternalError', `Internal error occurred: ${message}`, { causes: [{ message }] })
}

/** The response to a deletion that is complete at once. */
export function deletedStatus(subject: Subject, name: string, uid: string | undefined): Status {
  return {
    apiVersion: 'v1',
    kind: 'Status',
    metadata: {},
    status: 'Success',
    details: detailsOf(subject, name, uid === undefined ? {} : { uid }),
  }
}
