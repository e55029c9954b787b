import type { Snapshot } from '@tenon/ask'
import { rfc3339 } from '@tenon/runtime'

/** How old the facts of an answer are, and where they come from, as one sentence. */
export function originText({ takenAtMs, origin }: Pick<Snapshot, 'takenAtMs' | 'origin'>): string {
  const at = rfc3339(takenAtMs)
  if (origin.kind === 'objects')
    return `Facts of ${at}, from the objects of ${origin.server}; instance types: ${origin.catalogue}.`
  const who = origin.isLeading ? 'the leading controller' : 'a controller that does not lead'
  return `Facts of ${at}, from ${who} ${origin.identity}.`
}
