/** Which nodes a node was launched to replace, as its claim tells a later process too. */
import type { Clock } from '@tenon/runtime'
import type { NodeClaim } from '@tenon/api'
import type { Caches } from '../state/caches.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClaims'>
  readonly clock: Clock
}

/** Names of the claims whose nodes go for this one, separated by spaces. */
const replacesAnnotation = 'tenon.sh/replaces'
/** A command that is not done by then is given up, unless very many are under way. */
const longestWaitMs = 10 * 60_000

export function predecessorsAnnotation(claims: readonly NodeClaim[]): Readonly<Record<string, string>> {
  return { [replacesAnnotation]: claims.map(({ metadata }) => metadata.name).join(' ') }
}

/**
 * Whether pods are still to come from nodes that the claim's node replaces. Until then it looks empty, and
 * a process that knows nothing of the command would remove what was just launched, and launch it again.
 */
export function awaitsPods({ caches, clock }: Dependencies, { metadata }: NodeClaim): boolean {
  const noted = metadata.annotations?.[replacesAnnotation]
  if (noted === undefined) return false
  const ageMs = clock.now() - Date.parse(metadata.creationTimestamp ?? '')
  return noted.split(' ').some((name) => {
    const predecessor = caches.nodeClaims.get({ name })
    if (predecessor === undefined) return false
    return predecessor.metadata.deletionTimestamp !== undefined || ageMs < longestWaitMs
  })
}
