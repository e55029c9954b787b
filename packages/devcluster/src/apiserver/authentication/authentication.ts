import { ownValue } from '@tenon/api'
import { timingSafeEqual } from 'node:crypto'
import type { Secret as Credential } from '@tenon/runtime'
import type { StoredObject } from '../../contract.ts'
import { keyOf } from '../../storage/index.ts'
import type { ServerContext } from '../context.ts'
import type { TokenSigner } from './service-account-tokens.ts'
import type { User } from './user.ts'

export const tokenIssuer = 'https://kubernetes.default.svc.cluster.local'

const authenticated = 'system:authenticated'
const administrator: User = { name: 'kubernetes-admin', groups: ['system:masters', authenticated] }

/** The unauthenticated user. */
export const anonymous: User = { name: 'system:anonymous', groups: ['system:unauthenticated'] }

/** Authenticates requests. */
export class Authenticator {
  readonly audience = tokenIssuer
  readonly #ctx: ServerContext
  readonly #adminToken: Buffer
  readonly #signer: TokenSigner

  constructor(ctx: ServerContext, adminToken: Credential, signer: TokenSigner) {
    this.#ctx = ctx
    this.#adminToken = Buffer.from(adminToken.reveal())
    this.#signer = signer
  }

  /**
   * The user of a request by its headers (lower-case names); `undefined` without valid credentials. An administrator
   * may impersonate others (`impersonate-user`).
   */
  authenticate(headers: Readonly<Record<string, string>>): User | undefined {
    const [scheme, token] = (headers['authorization'] ?? '').split(' ')
    if (scheme?.toLowerCase() !== 'bearer' || token === undefined) return undefined
    const user = this.userOfToken(token)
    const as = headers['impersonate-user']
    if (user !== administrator || as === undefined || as === '') return user
    const groups = (headers['impersonate-group'] ?? '').split(',').map((group) => group.trim())
    const given = groups.filter((group) => group !== '')
    return { name: as, groups: [...(given.length > 0 ? given : accountGroups(as)), authenticated] }
  }

  /** The user of a bearer token; `undefined` if it is invalid. */
  userOfToken(token: string): User | undefined {
    if (sameText(Buffer.from(token), this.#adminToken)) return administrator
    if (token.split('.').length === 3) return this.#serviceAccount(token)
    return this.#bootstrapUser(token)
  }

  #serviceAccount(token: string): User | undefined {
    const claims = this.#signer.verify(token)
    const nowSeconds = this.#ctx.clock.now() / 1000
    if (claims === undefined || claims.exp <= nowSeconds || claims.nbf > nowSeconds) return undefined
    const { namespace, serviceaccount } = claims['kubernetes.io']
    const account = this.#read('serviceaccounts', namespace, serviceaccount.name)
    if (account?.metadata.uid !== serviceaccount.uid) return undefined
    return {
      name: claims.sub,
      uid: serviceaccount.uid,
      groups: [...accountGroups(claims.sub), authenticated],
    }
  }

  /** Bootstrap tokens are Secrets in kube-system with the token id in their name. */
  #bootstrapUser(token: string): User | undefined {
    const [id, secret] = token.split('.')
    if (id === undefined || secret === undefined) return undefined
    const stored = this.#read('secrets', 'kube-system', `bootstrap-token-${id}`)
    if (stored === undefined || stored['type'] !== 'bootstrap.kubernetes.io/token') return undefined
    if (stored.metadata.deletionTimestamp !== undefined) return undefined
    const field = (name: string) =>
      Buffer.from(
        ownValue(stored['data'] as Record<string, string> | undefined, name) ?? '',
        'base64',
      ).toString()
    if (field('token-id') !== id || !sameText(Buffer.from(field('token-secret')), Buffer.from(secret)))
      return undefined
    if (field('usage-bootstrap-authentication') !== 'true') return undefined
    const expiration = field('expiration')
    // An invalid expiration counts as passed.
    if (expiration !== '' && !(Date.parse(expiration) > this.#ctx.clock.now())) return undefined
    const extraGroups = field('auth-extra-groups')
      .split(',')
      .filter((group) => group !== '')
    return { name: `system:bootstrap:${id}`, groups: ['system:bootstrappers', ...extraGroups, authenticated] }
  }

  #read(collection: string, namespace: string, name: string): StoredObject | undefined {
    return this.#ctx.store.collection(collection).get(keyOf(namespace, name))
  }
}

/** The groups of a service account by its user name; none for other users. */
function accountGroups(name: string): readonly string[] {
  const [, namespace] = /^system:serviceaccount:([^:]+):[^:]+$/.exec(name) ?? []
  return namespace === undefined ? [] : ['system:serviceaccounts', `system:serviceaccounts:${namespace}`]
}

/** Compares credentials in constant time. */
function sameText(left: Buffer, right: Buffer): boolean {
  return left.length === right.length && timingSafeEqual(left, right)
}
