import { hashString } from '@tenon/api'
import type { Caches } from '../../cluster/caches.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Pick<Caches, 'nodeClasses' | 'nodePools'>
}

/** What NodePools and node classes ask for, as a short text that is another one when somebody changes them. */
export function groundOf({ caches }: Dependencies): string {
  const objects = [caches.nodePools.list(), ...caches.nodeClasses.map((cache) => cache.list())]
  const texts = objects.map((list) =>
    list.map(({ metadata }) => `${metadata.uid ?? metadata.name}:${metadata.generation ?? 0}`).toSorted(),
  )
  return hashString(JSON.stringify(texts)).toString(36)
}
