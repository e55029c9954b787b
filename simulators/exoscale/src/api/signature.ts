import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Secret } from '@tenon/runtime'

/** An API key of the simulated organisation. */
export interface Credential {
  readonly key: string
  readonly secret: Secret
  /** Operation ids that this key may call (IAM role); default: all. */
  readonly operations?: readonly string[]
}

/** What an EXO2-HMAC-SHA256 signature covers. */
export interface SignedParts {
  readonly method: string
  /** Escaped path as sent, including `/v2` and the query. */
  readonly path: string
  readonly body: string | Uint8Array
  /** Unix seconds. */
  readonly expires: number
}

export type Verification =
  | { readonly kind: 'verified'; readonly credential: Credential }
  | { readonly kind: 'unsigned' }
  | { readonly kind: 'rejected'; readonly reason: string }

const scheme = 'EXO2-HMAC-SHA256 '

/** The value of the `Authorization` header for a request. */
export function authorizationHeader(credential: Credential, parts: SignedParts): string {
  const names = signedQueryNames(queryOf(parts.path))
  const args = names.length === 0 ? '' : `,signed-query-args=${names.join(';')}`
  const signature = sign(credential.secret, parts).toString('base64')
  return `${scheme}credential=${credential.key}${args},expires=${parts.expires},signature=${signature}`
}

/** Checks the `Authorization` header of a request at `nowMs`. */
export function verify(
  header: string | undefined,
  parts: Omit<SignedParts, 'expires'>,
  credentials: readonly Credential[],
  nowMs: number,
): Verification {
  if (header === undefined) return { kind: 'unsigned' }
  if (!header.startsWith(scheme)) return rejected('the authorization scheme must be EXO2-HMAC-SHA256')
  const fields = fieldsOf(header.slice(scheme.length))
  const credential = credentials.find((known) => known.key === fields.get('credential'))
  if (credential === undefined) return rejected('unknown API key')
  const expires = Number(fields.get('expires'))
  if (!/^[0-9]+$/.test(fields.get('expires') ?? '')) return rejected('expires must be Unix seconds')
  if (expires * 1000 <= nowMs) return rejected('the signature has expired')
  const names = signedQueryNames(queryOf(parts.path)).join(';')
  if ((fields.get('signed-query-args') ?? '') !== names) {
    return rejected(`signed-query-args must be "${names}"`)
  }
  const expected = sign(credential.secret, { ...parts, expires })
  const given = Buffer.from(fields.get('signature') ?? '', 'base64')
  if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
    return rejected('the signature does not match the request')
  }
  return { kind: 'verified', credential }
}

/** The signed bytes: five segments joined by line feeds, the fourth always empty. */
export function messageToSign(parts: SignedParts): Buffer {
  const [path = ''] = parts.path.split('?')
  const query = queryOf(parts.path)
  const values = signedQueryNames(query).map((name) => query.get(name) ?? '')
  return Buffer.concat([
    Buffer.from(`${parts.method} ${path}\n`),
    typeof parts.body === 'string' ? Buffer.from(parts.body) : parts.body,
    Buffer.from(`\n${values.join('')}\n\n${parts.expires}`),
  ])
}

function sign(secret: Secret, parts: SignedParts): Buffer {
  return createHmac('sha256', secret.reveal()).update(messageToSign(parts)).digest()
}

/** Sorted names that occur exactly once; repeated parameters are not signed. */
function signedQueryNames(query: URLSearchParams): string[] {
  const names = [...new Set(query.keys())]
  return names.filter((name) => query.getAll(name).length === 1).sort()
}

function queryOf(path: string): URLSearchParams {
  const start = path.indexOf('?')
  return new URLSearchParams(start === -1 ? '' : path.slice(start + 1))
}

function fieldsOf(text: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (const part of text.split(',')) {
    const equals = part.indexOf('=')
    if (equals > 0) fields.set(part.slice(0, equals), part.slice(equals + 1))
  }
  return fields
}

function rejected(reason: string): Verification {
  return { kind: 'rejected', reason }
}
