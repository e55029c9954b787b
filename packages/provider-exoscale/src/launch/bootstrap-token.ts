/** Short-lived tokens with which new nodes join. */
import { kinds, type NodeClaim } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { type Clock, type Random, randomString, rfc3339, Secret } from '@tenon/runtime'
import { exoscaleAnnotations, tokenLabel } from '../identifiers.ts'

export const tokenNamespace = 'kube-system'
export const tokenSecretType = 'bootstrap.kubernetes.io/token'
export const tokenLifetimeMs = 10 * 60_000

/** A token that exists in the cluster. */
export interface BootstrapToken {
  readonly secretName: string
  /** `<id>.<secret>` */
  readonly token: Secret
}

/** Creates and deletes token Secrets. */
export class BootstrapTokens {
  readonly #kube: Pick<KubeClient, 'create' | 'delete'>
  readonly #clock: Clock
  readonly #random: Random

  constructor(deps: {
    readonly kube: Pick<KubeClient, 'create' | 'delete'>
    readonly clock: Clock
    readonly random: Random
  }) {
    this.#kube = deps.kube
    this.#clock = deps.clock
    this.#random = deps.random
  }

  async create(claim: NodeClaim, signal?: AbortSignal): Promise<BootstrapToken> {
    const hex = '0123456789abcdef'
    const id = randomString(this.#random, 6, hex)
    const secret = randomString(this.#random, 16, hex)
    const now = this.#clock.now()
    const data = {
      'token-id': id,
      'token-secret': secret,
      'usage-bootstrap-authentication': 'true',
      'usage-bootstrap-signing': 'true',
      'auth-extra-groups': 'system:bootstrappers:worker,system:bootstrappers:ingress',
      expiration: rfc3339(now + tokenLifetimeMs),
      description: `Lets the node of NodeClaim ${claim.metadata.name} join`,
    }
    const secretName = `bootstrap-token-${id}`
    await this.#kube.create(
      kinds.secret,
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: {
          name: secretName,
          namespace: tokenNamespace,
          labels: { [tokenLabel.key]: tokenLabel.value },
          annotations: {
            [exoscaleAnnotations.bootstrapToken]: claim.metadata.name,
            [exoscaleAnnotations.tokenCreated]: rfc3339(now),
          },
        },
        type: tokenSecretType,
        data: Object.fromEntries(
          Object.entries(data).map(([key, value]) => [key, Buffer.from(value, 'utf8').toString('base64')]),
        ),
      },
      signal === undefined ? {} : { signal },
    )
    return { secretName, token: new Secret(`${id}.${secret}`) }
  }

  /** Deletes a token, which may be gone already. */
  async delete(secretName: string, signal?: AbortSignal): Promise<void> {
    const key = { namespace: tokenNamespace, name: secretName }
    try {
      await this.#kube.delete(kinds.secret, key, signal === undefined ? {} : { signal })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }
}
