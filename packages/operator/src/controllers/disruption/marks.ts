/** What a disrupted node carries for others to see: the taint, and the reason on its claim (disruption.md 14). */
import {
  ConditionSet,
  type DisruptionReason,
  disruptedTaint,
  isConditionTrue,
  karpenterKinds,
  kinds,
  type Node,
  type NodeClaim,
  sameTaint,
} from '@tenon/api'
import { isKubeError, mergePatchOf } from '@tenon/kube'
import type { OperatorContext } from '../../context.ts'
import { nodeClaimConditions } from '../nodeclaim-lifecycle/conditions.ts'

const attempts = 3

/** Puts marks on and takes them off; what is so already is not written. */
export class DisruptionMarks {
  readonly #context: OperatorContext

  constructor(context: OperatorContext) {
    this.#context = context
  }

  /** @returns false when the Node is gone, or changes faster than it can be written. */
  async taint(node: Node, isWanted: boolean): Promise<boolean> {
    const key = { name: node.metadata.name }
    return await writeLatest(
      node,
      () => this.#context.client.get(kinds.node, key),
      async (latest) => {
        const taints = latest.spec?.taints ?? []
        const others = taints.filter((taint) => !sameTaint(taint, disruptedTaint))
        if (isWanted === others.length < taints.length) return
        const patch = mergePatchOf(latest, {
          ...latest,
          spec: { ...latest.spec, taints: isWanted ? [...taints, disruptedTaint] : others },
        })
        await this.#context.client.patch(kinds.node, key, patch ?? {}, {
          resourceVersion: latest.metadata.resourceVersion ?? '',
        })
      },
    )
  }

  /** @returns as {@link taint}, of the claim. */
  async setReason(claim: NodeClaim, reason: DisruptionReason): Promise<boolean> {
    return await this.#writeConditions(claim, (latest) =>
      ConditionSet.of(latest, nodeClaimConditions).set(
        { type: 'DisruptionReason', status: 'True', reason, message: reason },
        this.#context.clock.now(),
      ),
    )
  }

  /** @returns as {@link taint}, of the claim. */
  async clearReason(claim: NodeClaim): Promise<boolean> {
    if (!isConditionTrue(claim, 'DisruptionReason')) return true
    return await this.#writeConditions(claim, (latest) =>
      ConditionSet.of(latest, nodeClaimConditions).clear('DisruptionReason'),
    )
  }

  async #writeConditions(claim: NodeClaim, wanted: (latest: NodeClaim) => ConditionSet): Promise<boolean> {
    const key = { name: claim.metadata.name }
    return await writeLatest(
      claim,
      () => this.#context.client.get(karpenterKinds.nodeClaim, key),
      async (latest) => {
        await this.#context.client.patch(
          karpenterKinds.nodeClaim,
          key,
          { status: { conditions: wanted(latest).conditions } },
          { subresource: 'status', resourceVersion: latest.metadata.resourceVersion ?? '' },
        )
      },
    )
  }
}

/** Writes over the cached object, and over the current one when that has moved on meanwhile. */
async function writeLatest<T>(
  cached: T,
  current: () => Promise<T | undefined>,
  write: (object: T) => Promise<void>,
): Promise<boolean> {
  let object: T | undefined = cached
  for (let attempt = 0; attempt < attempts && object !== undefined; attempt++) {
    try {
      await write(object)
      return true
    } catch (error) {
      if (isKubeError(error, 'notFound')) return false
      if (!isKubeError(error, 'conflict')) throw error
      object = await current()
    }
  }
  return false
}
