/** Which nodes a node was launched to replace; an annotation of its claim says so to a later process. */
import type { Clock } from '@tenon/runtime'
import type { NodeClaim } from '@tenon/api'
import type { Caches } from '../state/caches.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly clock: Clock
}

/** Names of the claims that this one replaces, separated by spaces. */
const replacesAnnotation = 'tenon.sh/replaces'
/** Timeout of a command, unless very many are under way. */
const longestWaitMs = 10 * 60_000

export function predecessorsAnnotation(claims: readonly NodeClaim[]): Readonly<Record<string, string>> {
  return { [replacesAnnotation]: claims.map(({ metadata }) => metadata.name).join(' ') }
}

/** Names of the claims that this one replaces, which may be gone. */
export function predecessorsOf({ metadata }: NodeClaim): readonly string[] {
  return metadata.annotations?.[replacesAnnotation]?.split(' ') ?? []
}

/**
 * Whether pods are still to come from nodes that the claim's node replaces. Until then it looks empty, and after a restart
 * it would be removed and launched again.
 */
export function awaitsPods({ caches, clock }: Dependencies, claim: NodeClaim): boolean {
  const ageMs = clock.now() - Date.parse(claim.metadata.creationTimestamp ?? '')
  return predecessorsOf(claim).some((name) => {
    const predecessor = caches.nodeClaims.get({ name })
    if (predecessor === undefined) return false
    return predecessor.metadata.deletionTimestamp !== undefined || ageMs < longestWaitMs
  })
}
