/** EXO2-HMAC-SHA256 request signatures. */
import { createHmac } from 'node:crypto'
import type { Secret } from '@tenon/runtime'

export interface Credentials {
  readonly key: string
  readonly secret: Secret
}

export interface SignedParts {
  readonly method: string
  /** Escaped path with its query, as sent; it begins with `/v2`. */
  readonly path: string
  readonly body: string
  /** Unix seconds. */
  readonly expires: number
}

/** The `Authorization` header of one attempt. Repeated parameters are not signed. */
export function authorization(parts: SignedParts, credentials: Credentials): string {
  const parameters = signedParameters(parts.path)
  const message = signedMessage(parts, parameters)
  const signature = createHmac('sha256', credentials.secret.reveal()).update(message, 'utf8').digest('base64')
  const names = parameters.map(([name]) => name).join(';')
  return [
    `EXO2-HMAC-SHA256 credential=${credentials.key}`,
    ...(names === '' ? [] : [`signed-query-args=${names}`]),
    `expires=${parts.expires}`,
    `signature=${signature}`,
  ].join(',')
}

type Parameter = readonly [name: string, value: string]

function signedMessage(parts: SignedParts, parameters: readonly Parameter[]): string {
  const [path = ''] = parts.path.split('?', 1)
  const values = parameters.map(([, value]) => value).join('')
  return [`${parts.method} ${path}`, parts.body, values, '', String(parts.expires)].join('\n')
}

function signedParameters(path: string): readonly Parameter[] {
  const at = path.indexOf('?')
  if (at === -1) return []
  const query = new URLSearchParams(path.slice(at + 1))
  return [...query].filter(([name]) => query.getAll(name).length === 1).sort(([a], [b]) => (a < b ? -1 : 1))
}
