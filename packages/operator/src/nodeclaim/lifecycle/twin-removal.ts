/** What becomes of Nodes that carry the provider ID of an instance beside its own (reports-2.md 6). */
import { kinds, type Node, type NodeClaim, terminationFinalizer } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import type { Clock, Logger } from '@tenon/runtime'
import { indexes } from '../../state/caches.ts'
import { isReporting, ownNode, silentSinceMs, twinText } from '../../state/nodes/state-node.ts'
import type { Settings } from '../../settings.ts'
import type { ClaimDeleter } from './delete-claim.ts'
import type { Kubernetes } from '../../kubernetes.ts'

/** A kubelet that was silent for so long does not come back under the name. */
const silentMs = 60_000
const pollMs = 10_000

/** `ended`: the claim is deleted, as nobody can tell which Node is its instance. */
type Outcome = 'alone' | 'ended' | { readonly againMs: number }

export class TwinRemoval {
  readonly #kubernetes: Kubernetes<'nodes'>
  readonly #deleter: ClaimDeleter
  readonly #clock: Pick<Clock, 'monotonic' | 'now'>
  readonly #logger: Logger
  readonly #settings: Pick<Settings, 'registrationTimeoutMs'>
  /** Since when several kubelets have reported for the instance of a claim, by claim UID. */
  readonly #rivals = new Map<string, number>()

  constructor(
    kubernetes: Kubernetes<'nodes'>,
    deleter: ClaimDeleter,
    clock: Pick<Clock, 'monotonic' | 'now'>,
    logger: Logger,
    settings: Pick<Settings, 'registrationTimeoutMs'>,
  ) {
    this.#kubernetes = kubernetes
    this.#deleter = deleter
    this.#clock = clock
    this.#logger = logger
    this.#settings = settings
  }

  /** Tells of Nodes beside the claim's own, and removes those whose kubelets are gone. */
  async look(claim: NodeClaim, signal: AbortSignal): Promise<Outcome> {
    const { caches, events } = this.#kubernetes
    const uid = claim.metadata.uid ?? ''
    const nodes = caches.nodes.byIndex(indexes.byProviderId, claim.status?.providerID ?? '')
    const own = ownNode(nodes, claim)
    if (nodes.length < 2 || own === undefined) {
      this.#rivals.delete(uid)
      return 'alone'
    }
    const message = twinText(nodes, own)
    const others = nodes.filter((node) => node !== own)
    for (const object of [claim, ...others])
      events.record({
        object,
        type: 'Warning',
        reason: 'MultipleNodesFound',
        message,
        dedupe: [object.metadata.uid ?? object.metadata.name, message],
      })
    if (nodes.filter(isReporting).length > 1) return await this.#outwait(claim, uid, message)
    this.#rivals.delete(uid)
    if (isReporting(own)) for (const node of others) await this.#remove(node, own, signal)
    return { againMs: pollMs }
  }

  /** Several kubelets report: one of them runs elsewhere, and nobody can tell which. */
  async #outwait(claim: NodeClaim, uid: string, message: string): Promise<Outcome> {
    const now = this.#clock.monotonic()
    const sinceMs = this.#rivals.get(uid) ?? now
    this.#rivals.set(uid, sinceMs)
    if (now - sinceMs < this.#settings.registrationTimeoutMs) return { againMs: pollMs }
    if (await this.#deleter.delete(claim, 'registration_timeout'))
      this.#logger.info('deleting nodeclaim that has several nodes', {
        NodeClaim: { name: claim.metadata.name },
        message,
      })
    this.#rivals.delete(uid)
    return 'ended'
  }

  /** The instance stays: only what stands for it twice goes, without being drained. */
  async #remove({ metadata: { name } }: Node, own: Node, signal: AbortSignal): Promise<void> {
    const { client } = this.#kubernetes
    // Caches may be behind: both are asked for.
    const [twin, present] = await Promise.all([
      client.get(kinds.node, { name }, { signal }),
      client.get(kinds.node, { name: own.metadata.name }, { signal }),
    ])
    if (twin === undefined || present === undefined || !isReporting(present)) return
    const isTwin = twin.spec?.providerID === present.spec?.providerID
    if (!isTwin || isReporting(twin) || this.#clock.now() - silentSinceMs(twin) < silentMs) return
    const { uid, resourceVersion = '' } = twin.metadata
    const finalizers = (twin.metadata.finalizers ?? []).filter((each) => each !== terminationFinalizer)
    try {
      // The finalizer would end the instance.
      await client.patch(kinds.node, { name }, { metadata: { finalizers } }, { resourceVersion })
      await client.delete(kinds.node, { name }, { ...(uid !== undefined && { preconditionUid: uid }) })
    } catch (error) {
      if (!isKubeError(error, 'conflict', 'notFound')) throw error
      return
    }
    this.#logger.info('deleted node whose kubelet reports under another name', {
      Node: { name },
      'provider-id': twin.spec?.providerID,
      successor: own.metadata.name,
    })
  }
}
