import type { HttpRequest } from '@tenon/runtime'
import type { LocalDeleteOptions } from '../../contract.ts'
import { bodyText, parseObject } from '../http/request-body.ts'
import { badRequest } from '../http/status.ts'

/** Options of a deletion and whether it is a dry run, from body and query. */
export interface DeleteRequest {
  readonly options: LocalDeleteOptions
  readonly dryRun: boolean
}

type Policy = NonNullable<LocalDeleteOptions['propagationPolicy']>

/**
 * Parses the options of a DELETE request: its body first, then its query.
 * @throws ApiError 400.
 */
export function deleteRequestOf(request: HttpRequest, query: URLSearchParams): DeleteRequest {
  const body = bodyText(request) === '' ? {} : parseObject(request)
  return deleteRequestFrom(body, query)
}

/** The same for a DeleteOptions object in another body. */
export function deleteRequestFrom(
  body: Readonly<Record<string, unknown>>,
  query: URLSearchParams,
): DeleteRequest {
  const preconditions = (body['preconditions'] ?? {}) as { uid?: string; resourceVersion?: string }
  const grace = body['gracePeriodSeconds'] ?? query.get('gracePeriodSeconds')
  const orphan = body['orphanDependents'] ?? query.get('orphanDependents')
  const policy = body['propagationPolicy'] ?? query.get('propagationPolicy') ?? legacyPolicy(orphan)
  const dryRun = (body['dryRun'] ?? query.getAll('dryRun')) as readonly string[]
  return {
    options: {
      ...(grace === null || grace === '' ? {} : { gracePeriodSeconds: wholeNumber(grace) }),
      ...(policy === undefined || policy === '' ? {} : { propagationPolicy: checkedPolicy(policy) }),
      ...(preconditions.uid === undefined ? {} : { preconditionUid: preconditions.uid }),
      ...(preconditions.resourceVersion === undefined
        ? {}
        : { preconditionResourceVersion: preconditions.resourceVersion }),
    },
    dryRun: dryRun.includes('All'),
  }
}

function legacyPolicy(orphanDependents: unknown): Policy | undefined {
  if (orphanDependents === true || orphanDependents === 'true') return 'Orphan'
  return orphanDependents === false || orphanDependents === 'false' ? 'Background' : undefined
}

function wholeNumber(value: unknown): number {
  const number = Number(value)
  if (!Number.isInteger(number)) throw badRequest(`invalid gracePeriodSeconds ${JSON.stringify(value)}`)
  return number
}

function checkedPolicy(value: unknown): Policy {
  if (value === 'Background' || value === 'Foreground' || value === 'Orphan') return value
  throw badRequest(`invalid propagationPolicy ${JSON.stringify(value)}`)
}
