/** `nodeclaim.podevents`: remembers when pods last came to or left a node (lifecycle.md 8). */
import { karpenterKinds, type Pod } from '@tenon/api'
import { type Change, done, isKubeError, type ReconcileResult } from '@tenon/kube'
import { rfc3339 } from '@tenon/runtime'
import type { OperatorContext } from '../../context.ts'
import { isDaemonPod, isTerminal, isTerminating } from '../../state/pods.ts'

const leastGapMs = 10_000

/** Whether a change of a pod matters to its node: it was bound, ended, or began to end. */
export function isPodEvent(change: Change<Pod>): boolean {
  const pod = change.object
  if (pod.spec.nodeName === undefined || pod.spec.nodeName === '' || isDaemonPod(pod)) return false
  if (change.kind === 'added') return true
  if (change.kind === 'deleted') return false
  const { old } = change
  return (
    old.spec.nodeName !== pod.spec.nodeName ||
    isTerminal(old) !== isTerminal(pod) ||
    isTerminating(old) !== isTerminating(pod)
  )
}

/** Follows the pods and stamps the claims of their nodes. */
export class PodEvents {
  readonly #context: OperatorContext

  constructor(context: OperatorContext) {
    this.#context = context
  }

  /** @param nodeName the node of a pod that changed. */
  async reconcile(nodeName: string): Promise<ReconcileResult> {
    const { caches, state, clock, client } = this.#context
    const node = caches.nodes.get({ name: nodeName })
    const claim = node === undefined ? undefined : state.claimOf(node)
    if (claim === undefined) return done
    const last = claim.status?.lastPodEventTime
    if (last !== undefined && clock.now() - Date.parse(last) < leastGapMs) return done
    try {
      await client.patch(
        karpenterKinds.nodeClaim,
        { name: claim.metadata.name },
        { status: { lastPodEventTime: rfc3339(clock.now()) } },
        { subresource: 'status' },
      )
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
    return done
  }
}
