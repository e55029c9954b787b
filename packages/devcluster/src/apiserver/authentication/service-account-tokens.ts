import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from 'node:crypto'
import type { Secret } from '@tenon/runtime'

/** Claims of a service account token. Times are in seconds since the Unix epoch. */
export interface TokenClaims {
  readonly iss: string
  readonly sub: string
  readonly aud: readonly string[]
  readonly exp: number
  readonly iat: number
  readonly nbf: number
  readonly jti: string
  readonly 'kubernetes.io': {
    readonly namespace: string
    readonly serviceaccount: { readonly name: string; readonly uid: string }
    readonly pod?: { readonly name: string; readonly uid: string }
  }
}

const header = Buffer.from(JSON.stringify({ alg: 'ES256', typ: 'JWT' })).toString('base64url')

/** Signs and checks service account tokens (ES256). */
export class TokenSigner {
  readonly #private: KeyObject
  readonly #public: KeyObject

  /** @param privateKeyPem a P-256 private key. */
  constructor(privateKeyPem: Secret) {
    this.#private = createPrivateKey(privateKeyPem.reveal())
    this.#public = createPublicKey(this.#private)
  }

  sign(claims: TokenClaims): string {
    const content = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
    const signature = sign('sha256', Buffer.from(content), { key: this.#private, dsaEncoding: 'ieee-p1363' })
    return `${content}.${signature.toString('base64url')}`
  }

  /** The claims of a token with a valid signature; otherwise `undefined`. */
  verify(token: string): TokenClaims | undefined {
    const [head, body, signature, ...rest] = token.split('.')
    if (head === undefined || body === undefined || signature === undefined || rest.length > 0)
      return undefined
    const key = { key: this.#public, dsaEncoding: 'ieee-p1363' } as const
    const signed = Buffer.from(signature, 'base64url')
    if (!verify('sha256', Buffer.from(`${head}.${body}`), key, signed)) return undefined
    try {
      return JSON.parse(Buffer.from(body, 'base64url').toString()) as TokenClaims
    } catch {
      return undefined
    }
  }

  /** The public key as a JSON web key. */
  jwk(): object {
    return { ...this.#public.export({ format: 'jwk' }), use: 'sig', alg: 'ES256' }
  }
}
