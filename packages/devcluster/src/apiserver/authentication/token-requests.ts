import { rfc3339, uuid } from '@tenon/runtime'
import { tokenIssuer } from './authentication.ts'
import type { ObjectKey, ServerContext } from '../context.ts'
import type { Served } from '../kinds/registry.ts'
import type { TokenSigner } from './service-account-tokens.ts'
import { badRequest, notFound } from '../http/status.ts'
import { readObject } from '../verbs/writing.ts'

const defaultLifetimeSeconds = 3600
const minimumLifetimeSeconds = 600

interface TokenRequestSpec {
  readonly audiences?: readonly string[]
  readonly expirationSeconds?: number
  readonly boundObjectRef?: { readonly kind?: string; readonly name?: string; readonly uid?: string }
}

/** Issues a token for a service account (`POST serviceaccounts/NAME/token`). @throws ApiError. */
export function issueToken(
  ctx: ServerContext,
  accounts: Served,
  key: ObjectKey,
  body: Readonly<Record<string, unknown>>,
  signer: TokenSigner,
): object {
  const account = readObject(ctx, accounts, key)
  if (account === undefined) throw notFound(accounts.definition, key.name)
  const spec = (body['spec'] ?? {}) as TokenRequestSpec
  const lifetimeSeconds = spec.expirationSeconds ?? defaultLifetimeSeconds
  if (!Number.isInteger(lifetimeSeconds) || lifetimeSeconds < minimumLifetimeSeconds)
    throw badRequest(`spec.expirationSeconds: may not specify a duration less than 10 minutes`)
  const audiences =
    spec.audiences === undefined || spec.audiences.length === 0 ? [tokenIssuer] : spec.audiences
  const nowSeconds = Math.floor(ctx.clock.now() / 1000)
  const { name, namespace = '', uid = '' } = account.metadata
  const reference = spec.boundObjectRef
  const pod =
    reference?.kind === 'Pod' ? { pod: { name: reference.name ?? '', uid: reference.uid ?? '' } } : {}
  const token = signer.sign({
    iss: tokenIssuer,
    sub: `system:serviceaccount:${namespace}:${name}`,
    aud: audiences,
    iat: nowSeconds,
    nbf: nowSeconds,
    exp: nowSeconds + lifetimeSeconds,
    jti: uuid(ctx.random),
    'kubernetes.io': { namespace, serviceaccount: { name, uid }, ...pod },
  })
  return {
    kind: 'TokenRequest',
    apiVersion: 'authentication.k8s.io/v1',
    metadata: { name, namespace, creationTimestamp: rfc3339(ctx.clock.now()) },
    spec: { ...spec, audiences, expirationSeconds: lifetimeSeconds },
    status: { token, expirationTimestamp: rfc3339((nowSeconds + lifetimeSeconds) * 1000) },
  }
}
