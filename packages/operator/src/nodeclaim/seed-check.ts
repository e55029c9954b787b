/** `state.nodeclaimgc`: forgets new claims that went before the caches showed them (lifecycle.md 6). */
import type { Logger } from '@tenon/runtime'
import { karpenterKinds } from '@tenon/api'
import { done, type KubeClient, type ReconcileResult } from '@tenon/kube'
import type { ControllerSpec, Enqueue } from '../controller.ts'
import type { ClusterState } from '../state/cluster-state.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'get'>
  readonly state: Pick<ClusterState, 'dropSeed' | 'seedOf' | 'seeds'>
  readonly logger: Logger
}

/** How long the caches may take to show a claim that was just created. */
export const seedCheckMs = 15_000

/** Checks claims that this process created. */
export class StateNodeClaimGC implements ControllerSpec {
  readonly name = 'state.nodeclaimgc'
  readonly concurrency = { least: 1, most: 1 }
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    this.#deps.state.seeds.add((name) => {
      enqueue(name, seedCheckMs)
    })
  }

  /** @param name a claim that was created {@link seedCheckMs} ago. */
  async reconcile(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { client, logger, state } = this.#deps
    const seed = state.seedOf(name)
    if (seed === undefined) return done
    const current = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
    if (current !== undefined && current.metadata.uid === seed.metadata.uid)
      return { kind: 'after', delayMs: seedCheckMs }
    state.dropSeed(name)
    logger.info('forgot a nodeclaim that was gone before it was seen', { NodeClaim: { name } })
    return done
  }
}
