/** Marks of a disrupted node: the taint, and the reason on its claim (disruption.md 14). */
import { type Clock, Tally } from '@tenon/runtime'
import {
  ConditionSet,
  disruptedTaint,
  isConditionTrue,
  karpenterKinds,
  kinds,
  type Node,
  type NodeClaim,
  sameTaint,
} from '@tenon/api'
import { isKubeError, type KubeClient, mergePatchOf } from '@tenon/kube'
import { nodeClaimConditions } from '../../state/conditions.ts'
import { isDisrupted, type StateNode } from '../../state/nodes/state-node.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { CommandReason } from './command.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'get' | 'patch'>
  readonly clock: Clock
}

const attempts = 4

/** Sets and removes marks; writes only changes. */
export class DisruptionMarks {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /**
   * A Node that is gone needs no marks.
   * @throws KubeError; `conflict` when it changes faster than it can be written.
   */
  async taint(node: Node, isWanted: boolean): Promise<void> {
    const key = { name: node.metadata.name }
    await writeLatest(
      node,
      () => this.#deps.client.get(kinds.node, key),
      async (latest) => {
        const taints = latest.spec?.taints ?? []
        const others = taints.filter((taint) => !sameTaint(taint, disruptedTaint))
        if (isWanted === others.length < taints.length) return
        const patch = mergePatchOf(latest, {
          ...latest,
          spec: { ...latest.spec, taints: isWanted ? [...taints, disruptedTaint] : others },
        })
        await this.#deps.client.patch(kinds.node, key, patch ?? {}, {
          resourceVersion: latest.metadata.resourceVersion ?? '',
        })
      },
    )
  }

  /** @throws as {@link taint}, of the claim. */
  async setReason(claim: NodeClaim, reason: CommandReason): Promise<void> {
    await this.#writeConditions(claim, (latest) =>
      ConditionSet.of(latest, nodeClaimConditions).set(
        { type: 'DisruptionReason', status: 'True', reason, message: reason },
        this.#deps.clock.now(),
      ),
    )
  }

  /** @throws as {@link taint}, of the claim. */
  async clearReason(claim: NodeClaim): Promise<void> {
    if (!isConditionTrue(claim, 'DisruptionReason')) return
    await this.#writeConditions(claim, (latest) =>
      ConditionSet.of(latest, nodeClaimConditions).clear('DisruptionReason'),
    )
  }

  /** Removes taint and reason, even if the caches do not show them yet. @throws as {@link taint}. */
  async takeOff({ metadata: node }: Node, { metadata: claim }: NodeClaim): Promise<void> {
    const { client } = this.#deps
    const [currentNode, currentClaim] = await Promise.all([
      client.get(kinds.node, { name: node.name }),
      client.get(karpenterKinds.nodeClaim, { name: claim.name }),
    ])
    if (currentNode?.metadata.uid === node.uid && currentNode !== undefined)
      await this.taint(currentNode, false)
    if (currentClaim?.metadata.uid === claim.uid && currentClaim !== undefined)
      await this.clearReason(currentClaim)
  }

  async #writeConditions(claim: NodeClaim, wanted: (latest: NodeClaim) => ConditionSet): Promise<void> {
    const key = { name: claim.metadata.name }
    await writeLatest(
      claim,
      () => this.#deps.client.get(karpenterKinds.nodeClaim, key),
      async (latest) => {
        await this.#deps.client.patch(
          karpenterKinds.nodeClaim,
          key,
          { status: { conditions: wanted(latest).conditions } },
          { subresource: 'status', resourceVersion: latest.metadata.resourceVersion ?? '' },
        )
      },
    )
  }
}

/** Patches the cached object, or after a conflict the current one. */
async function writeLatest<T>(
  cached: T,
  current: () => Promise<T | undefined>,
  write: (object: T) => Promise<void>,
): Promise<void> {
  let object: T | undefined = cached
  for (let attempt = 1; object !== undefined; attempt++) {
    try {
      await write(object)
      return
    } catch (error) {
      if (isKubeError(error, 'notFound')) return
      if (!isKubeError(error, 'conflict') || attempt === attempts) throw error
      object = await current()
    }
  }
}

/** Finds the marks of commands that did not finish (disruption.md 2, step 3). */
export class LeftMarks {
  readonly #state: Pick<ClusterState, 'stateNodes'>
  readonly #marks: DisruptionMarks
  /** Whether a command is about the instance. */
  readonly #hasCommand: (providerID: string) => boolean
  /** Instances with marks; those of commands that are under way among them. */
  readonly #marked = new Tally<StateNode, Set<StateNode>>({
    begin: () => new Set(),
    count: (marked, stateNode, by) => {
      if (by === -1) marked.delete(stateNode)
      else if (isMarked(stateNode)) marked.add(stateNode)
    },
  })

  constructor(
    state: Pick<ClusterState, 'stateNodes'>,
    marks: DisruptionMarks,
    hasCommand: (providerID: string) => boolean,
  ) {
    this.#state = state
    this.#marks = marks
    this.#hasCommand = hasCommand
  }

  /** Removes them. */
  async settle(): Promise<void> {
    for (const { node, claim, isInitialized, providerID } of this.#marked.of(this.#state.stateNodes())) {
      if (this.#hasCommand(providerID)) continue
      if (node !== undefined && hasLeftTaint(node)) await this.#marks.taint(node, false)
      if (claim !== undefined && isInitialized) await this.#marks.clearReason(claim)
    }
  }
}

function isMarked({ node, claim, isInitialized, isMarkedForDeletion }: StateNode): boolean {
  if (isMarkedForDeletion || claim === undefined) return false
  const hasReason = isInitialized && isConditionTrue(claim, 'DisruptionReason')
  return hasReason || (node !== undefined && hasLeftTaint(node))
}

/** Whether the node has the taint of a command and is not being deleted. */
const hasLeftTaint = (node: Node): boolean =>
  isDisrupted(node) && node.metadata.deletionTimestamp === undefined
