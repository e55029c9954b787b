/** Creates the claims of decisions, each once, and finds out about those whose creation had no answer. */
import { karpenterKinds, type NewObject, type NodeClaim, type NodePool } from '@tenon/api'
import type { OperatorContext } from '../context.ts'
import { createOrAdopt, freshClaimName, isUnclear } from './create-or-adopt.ts'

/** A creation without an answer is taken to have ended, one way or the other, after this long. */
const lateCreationMs = 60_000
/** A creation without an answer is asked for again at once, which makes no second claim. */
const creationAttempts = 3
const creationPauseMs = 500

/**
 * Creates a claim under a name of its own, which is held while it is not known whether it exists: its
 * NodePool launches nothing more before that is settled.
 */
export async function createPlannedClaim(
  { client, clock, random, state }: OperatorContext,
  pool: NodePool,
  object: NewObject<NodeClaim>,
  signal: AbortSignal,
): Promise<NodeClaim> {
  const name = freshClaimName(pool, random)
  const named = { ...object, metadata: { ...object.metadata, name } }
  state.poolClaims.reserve(pool.metadata.name, Number.POSITIVE_INFINITY, [name])
  for (let attempt = 1; ; attempt++) {
    try {
      const created = await createOrAdopt(client, pool, named, signal)
      state.seed(created)
      state.poolClaims.release(name)
      return created
    } catch (error) {
      if (signal.aborted) throw error
      if (!isUnclear(error)) {
        state.poolClaims.release(name)
        throw error
      }
      state.poolClaims.leaveUnsettled(name, clock.monotonic())
      if (attempt === creationAttempts) throw error
    }
    await clock.sleep(creationPauseMs * attempt, signal)
  }
}

/** Finds out what became of creations without an answer; those that may still be carried out stay held. */
export async function settlePlannedClaims(
  { caches, client, clock, state }: OperatorContext,
  signal: AbortSignal,
): Promise<void> {
  const lateMs = clock.monotonic() - lateCreationMs
  for (const { metadata, spec } of caches.nodePools.list()) {
    if (spec.replicas !== undefined) continue
    const ended = new Set(state.poolClaims.unsettled(metadata.name, lateMs))
    for (const name of state.poolClaims.unsettled(metadata.name)) {
      const claim = await client.get(karpenterKinds.nodeClaim, { name }, { signal })
      if (claim !== undefined) state.seed(claim)
      if (claim !== undefined || ended.has(name)) state.poolClaims.release(name)
    }
  }
}
