/** Deletes bootstrap tokens that were used or have expired. */
import { kinds, type Node, type NodeClaim, type Secret } from '@tenon/api'
import type { Cache, EventRecorder, KubeClient, ReconcileResult } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import { exoscaleAnnotations, tokenLabel } from '../identifiers.ts'
import { type BootstrapTokens, tokenLifetimeMs, tokenNamespace, tokenSecretType } from './bootstrap-token.ts'
import { hasKubeletReported } from './early-node.ts'

const leastDelayMs = 30_000
const mostDelayMs = 60_000

/** What to do with a token. */
export type TokenVerdict =
  | { readonly kind: 'foreign' }
  | { readonly kind: 'delete'; readonly why: string }
  | { readonly kind: 'keep'; readonly delayMs: number }

/** Decides about one Secret; `isJoined` tells whether its node has joined. */
export function judgeToken(secret: Secret, nowMs: number, isJoined: boolean): TokenVerdict {
  const { labels = {}, annotations = {}, creationTimestamp = '' } = secret.metadata
  if (secret.type !== tokenSecretType || labels[tokenLabel.key] !== tokenLabel.value)
    return { kind: 'foreign' }
  const createdMs = Date.parse(annotations[exoscaleAnnotations.tokenCreated] ?? creationTimestamp)
  const ageMs = nowMs - createdMs
  if (Number.isNaN(ageMs)) return { kind: 'delete', why: 'its age is invalid' }
  if (ageMs > tokenLifetimeMs) return { kind: 'delete', why: 'it has expired' }
  if (isJoined || annotations[exoscaleAnnotations.nodeRegistered] === 'true') {
    return { kind: 'delete', why: 'its node has joined' }
  }
  return { kind: 'keep', delayMs: Math.max(leastDelayMs, tokenLifetimeMs - ageMs) }
}

export interface TokenCleanupDependencies {
  readonly kube: Pick<KubeClient, 'list'>
  readonly tokens: BootstrapTokens
  readonly caches: {
    readonly nodeClaims: Pick<Cache<NodeClaim>, 'list'>
    readonly nodes: Pick<Cache<Node>, 'list'>
  }
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/** Checks all our token Secrets in one pass. Secrets are not cached. */
export class TokenCleanup {
  readonly #deps: TokenCleanupDependencies

  constructor(deps: TokenCleanupDependencies) {
    this.#deps = deps
  }

  async run(signal: AbortSignal): Promise<ReconcileResult> {
    const { kube, clock } = this.#deps
    const secrets = await kube.list(kinds.secret, {
      namespace: tokenNamespace,
      labelSelector: { matchLabels: { [tokenLabel.key]: tokenLabel.value } },
      signal,
    })
    if (secrets.length === 0) return { kind: 'after', delayMs: mostDelayMs }
    const joined = this.#joinedNames()
    const delays: number[] = []
    for (const secret of secrets) {
      const claimName = secret.metadata.annotations?.[exoscaleAnnotations.bootstrapToken]
      const isJoined =
        joined.secretNames.has(secret.metadata.name) ||
        (claimName !== undefined && joined.claimNames.has(claimName))
      const verdict = judgeToken(secret, clock.now(), isJoined)
      if (verdict.kind === 'keep') delays.push(verdict.delayMs)
      if (verdict.kind === 'delete') delays.push(await this.#delete(secret, verdict.why, signal))
    }
    return { kind: 'after', delayMs: Math.min(mostDelayMs, ...delays) }
  }

  async #delete(secret: Secret, why: string, signal: AbortSignal): Promise<number> {
    const { events, tokens, logger } = this.#deps
    const { name } = secret.metadata
    const object = { apiVersion: 'v1', kind: 'Secret', metadata: secret.metadata }
    events.record({ object, type: 'Normal', reason: 'TokenCleanup', message: `Deleting the token: ${why}` })
    try {
      await tokens.delete(name, signal)
      return mostDelayMs
    } catch (error) {
      signal.throwIfAborted()
      logger.warn('bootstrap token could not be deleted', { secret: name, error })
      const message = `The token could not be deleted: ${error instanceof Error ? error.message : String(error)}`
      events.record({ object, type: 'Warning', reason: 'CleanupFailed', message })
      return leastDelayMs
    }
  }

  #joinedNames(): { readonly claimNames: ReadonlySet<string>; readonly secretNames: ReadonlySet<string> } {
    const { nodes, nodeClaims } = this.#deps.caches
    const joined = nodes.list().filter(hasKubeletReported)
    const providerIds = new Set(joined.map((node) => node.spec?.providerID).filter((id) => id !== undefined))
    const claims = nodeClaims
      .list()
      .filter((claim) => claim.status?.providerID !== undefined && providerIds.has(claim.status.providerID))
    const secretNames = joined.map((node) => node.metadata.annotations?.[exoscaleAnnotations.bootstrapToken])
    return {
      claimNames: new Set(claims.map((claim) => claim.metadata.name)),
      secretNames: new Set(secretNames.filter((name) => name !== undefined)),
    }
  }
}
