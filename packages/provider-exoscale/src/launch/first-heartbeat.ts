/**
 * Deletes claims whose kubelet never reported. Their early Node hides them from the core's registration timeout. If
 * another instance reported under the Node's name, it waits until that stops.
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

/** Since the Node's creation. */
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
    // The second check, as a cache may lag.
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

/** Whether the Node shows that its instance's kubelet does not report. An invalid status proves nothing. */
function isSilent(node: Node): boolean {
  const status: unknown = node.status ?? {}
  if (typeof status !== 'object' || hasKubeletReported(node)) return false
  return node.status?.conditions?.find(({ type }) => type === 'Ready')?.status !== 'True'
}
