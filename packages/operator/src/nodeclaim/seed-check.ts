import { karpenterKinds } from '@tenon/api'
import { done, type KubeClient } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { ControllerSpec } from '../controller.ts'
import type { ClusterState } from '../state/cluster-state.ts'

/** How long the caches may take to show a claim that was just created. */
export const seedCheckMs = 15_000

/**
 * `state.nodeclaimgc`: forgets claims that this process created and that were deleted before the caches showed them
 * (lifecycle.md 6). Otherwise they would count forever.
 */
export function nodeClaimSeedCheck(
  client: Pick<KubeClient, 'get'>,
  state: ClusterState,
  logger: Logger,
): ControllerSpec {
  return {
    name: 'state.nodeclaimgc',
    concurrency: { least: 1, most: 1 },
    watch(enqueue) {
      state.seeds.add((name) => {
        enqueue(name, seedCheckMs)
      })
    },
    async reconcile(name, signal) {
      const seed = state.seedOf(name)
      if (seed === undefined) return done
      const current = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
      if (current !== undefined && current.metadata.uid === seed.metadata.uid)
        return { kind: 'after', delayMs: seedCheckMs }
      state.dropSeed(name)
      logger.info('forgot a nodeclaim that was gone before it was seen', { NodeClaim: { name } })
      return done
    },
  }
}
