import type { CloudProvider } from '@tenon/provider'
import type { NodeClass, NodePool } from '@tenon/api'
import type { Caches } from '../cluster/caches.ts'
import type { Enqueue } from '../controller.ts'

/** What this file works with. */
interface Dependencies {
  readonly caches: Caches
  readonly provider: Pick<CloudProvider, 'nodeClasses'>
}

/** The pool of that name if this provider serves its node class. */
export function managedPool(deps: Dependencies, name: string): NodePool | undefined {
  const pool = deps.caches.nodePools.get({ name })
  const ref = pool?.spec.template.spec.nodeClassRef
  const isManaged = deps.provider.nodeClasses.some(
    (type) => type.group === ref?.group && type.kind === ref.kind,
  )
  return isManaged ? pool : undefined
}

/** The node class that a pool names; undefined while there is none. */
export function nodeClassOf({ caches }: Dependencies, pool: NodePool): NodeClass | undefined {
  const ref = pool.spec.template.spec.nodeClassRef
  const cache = caches.nodeClasses.find(({ type }) => type.group === ref.group && type.kind === ref.kind)
  return cache?.get({ name: ref.name })
}

/** Asks for the NodePools of every node class that changes. */
export function enqueuePoolsOfClasses(
  { nodePools, nodeClasses }: Pick<Caches, 'nodePools' | 'nodeClasses'>,
  enqueue: Enqueue,
): void {
  for (const cache of nodeClasses)
    cache.onChange(({ object }) => {
      for (const { metadata, spec } of nodePools.list())
        if (spec.template.spec.nodeClassRef.name === object.metadata.name) enqueue(metadata.name)
    })
}
