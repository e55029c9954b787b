/**
 * Deletes claims whose kubelet never reported: their early Node hides them from the core. Where another instance
 * reported under the Node's name, that takes until it reports no more.
 */
import { karpenterKinds, kinds, type Node, type NodeClaim } from '@tenon/api'
import {
  type Cache,
  done,
  type EventRecorder,
  isKubeError,
  type KubeClient,
  type ReconcileResult,
} from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import { parseProviderId } from '../identifiers.ts'
import { hasKubeletReported, isOfAnotherInstance } from './early-node.ts'

/** From the Node's creation. */
const firstHeartbeatTimeoutMs = 15 * 60_000

const recheckMs = 60_000

export interface FirstHeartbeatDependencies {
  readonly kube: Pick<KubeClient, 'delete' | 'get'>
  readonly nodes: Cache<Node>
  readonly nodeClaims: Cache<NodeClaim>
  readonly events: EventRecorder
  readonly clock: Clock
}

/** Reconciles one Node by name. */
export class FirstHeartbeat {
  readonly #deps: FirstHeartbeatDependencies

  constructor(deps: FirstHeartbeatDependencies) {
    this.#deps = deps
  }

  async reconcile(nodeName: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { nodes, nodeClaims, clock } = this.#deps
    const node = nodes.get({ name: nodeName })
    if (node === undefined || node.metadata.deletionTimestamp !== undefined || hasKubeletReported(node))
      return done
    const providerID = node.spec?.providerID ?? ''
    if (parseProviderId(providerID).kind !== 'instance') return done
    const leftMs = Date.parse(node.metadata.creationTimestamp ?? '') + firstHeartbeatTimeoutMs - clock.now()
    if (leftMs > 0) return { kind: 'after', delayMs: leftMs }
    const claim = nodeClaims.list().find((candidate) => candidate.status?.providerID === providerID)
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return done
    // The second witness: what a cache shows of a Node may be less than there is.
    const stored = await this.#deps.kube.get(kinds.node, { name: nodeName }, { signal })
    if (stored === undefined || !isSilent(stored)) return { kind: 'after', delayMs: recheckMs }
    await this.#giveUp(claim, stored, signal)
    return done
  }

  async #giveUp(claim: NodeClaim, node: Node, signal: AbortSignal): Promise<void> {
    const { kube, events } = this.#deps
    const nodeName = node.metadata.name
    const message = isOfAnotherInstance(node)
      ? `Another instance reported as Node ${nodeName} until it was gone (system UUID ${node.status?.nodeInfo?.['systemUUID']}), and the kubelet of the NodeClaim's own instance never did`
      : `The kubelet of Node ${nodeName} did not report within 15 min; check the console of the instance, the security groups and the API server address`
    events.record({ object: claim, type: 'Warning', reason: 'NodeNeverJoined', message })
    const { uid } = claim.metadata
    const options = uid === undefined ? { signal } : { signal, preconditionUid: uid }
    await kube
      .delete(karpenterKinds.nodeClaim, { name: claim.metadata.name }, options)
      .catch((error: unknown) => {
        if (!isKubeError(error, 'notFound')) throw error
      })
  }
}

/** Whether the Node says that no kubelet reports for its instance; of a status that cannot be read nothing follows. */
function isSilent(node: Node): boolean {
  const status: unknown = node.status ?? {}
  if (typeof status !== 'object' || hasKubeletReported(node)) return false
  return node.status?.conditions?.find(({ type }) => type === 'Ready')?.status !== 'True'
}
