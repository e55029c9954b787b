import { isRecord } from '@tenon/api'
import type { HttpRequest } from '@tenon/runtime'
import { parse as parseYaml } from 'yaml'
import type { FieldValidation, WriteOptions } from '../context.ts'
import { isReadable, mediaTypeOf, protobuf, readableTypes } from './negotiation.ts'
import { decodeProtobuf } from '../protobuf/decode.ts'
import { badRequest, unsupportedMediaType } from './status.ts'

/** The user of a request, the webhook responses, and the warnings so far. */
export type RequestOrigin = Pick<WriteOptions, 'user' | 'webhooks' | 'warnings'>

/** The text of a request's body. */
export function bodyText(request: HttpRequest): string {
  const { body } = request
  if (body === undefined) return ''
  return typeof body === 'string' ? body : new TextDecoder().decode(body)
}

/**
 * The parsed body, JSON or YAML.
 * @throws ApiError 415 for other types, 400 for invalid text.
 */
export function parseBody(request: HttpRequest): unknown {
  const mediaType = mediaTypeOf(request.headers['content-type'])
  if (mediaType === protobuf) return decodedProtobuf(request)
  if (!isReadable(mediaType)) throw unsupportedMediaType(readableTypes)
  const text = bodyText(request)
  try {
    return mediaType.includes('yaml') ? parseYaml(text) : JSON.parse(text)
  } catch (error) {
    throw badRequest(`unable to decode the body of the request: ${(error as Error).message}`)
  }
}

/** Clients in Go send built-in kinds as protobuf, without a fallback. */
function decodedProtobuf({ body = '' }: HttpRequest): unknown {
  const bytes = typeof body === 'string' ? Buffer.from(body, 'latin1') : body
  const object = decodeProtobuf(bytes)
  if (object === undefined) throw unsupportedMediaType(readableTypes)
  return object
}

/**
 * The parsed body, which must be an object.
 * @throws ApiError 400, 415.
 */
export function parseObject(request: HttpRequest): Readonly<Record<string, unknown>> {
  const body = parseBody(request)
  if (isRecord(body)) return body
  throw badRequest('the body of the request must be an object')
}

/**
 * Options of a write, from its query and user agent.
 * @throws ApiError 400 for unknown values.
 */
export function writeOptionsOf(
  request: HttpRequest,
  query: URLSearchParams,
  by: RequestOrigin,
): WriteOptions {
  const dryRun = query.getAll('dryRun')
  if (dryRun.some((value) => value !== '' && value !== 'All'))
    throw badRequest(`invalid dryRun value ${JSON.stringify(dryRun)}: only "All" is supported`)
  const fieldValidation = query.get('fieldValidation') || 'Warn'
  if (!['Strict', 'Warn', 'Ignore'].includes(fieldValidation))
    throw badRequest(`invalid fieldValidation value "${fieldValidation}"`)
  return {
    manager: query.get('fieldManager') || agentName(request.headers['user-agent']),
    fieldValidation: fieldValidation as FieldValidation,
    dryRun: dryRun.includes('All'),
    internal: false,
    ...by,
  }
}

function agentName(userAgent: string | undefined): string {
  return userAgent?.split('/')[0] || 'unknown'
}
