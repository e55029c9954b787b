import type { CloudProvider } from '@tenon/provider'
import type { NodeClass, NodePool } from '@tenon/api'
import type { Caches } from '../caches.ts'
import type { Enqueue } from '../../controller.ts'

/** The pool of that name if this provider serves its node class. */
export function managedPool(
  {
    caches,
    provider,
  }: {
    readonly caches: Pick<Caches, 'nodePools'>
    readonly provider: Pick<CloudProvider, 'nodeClasses'>
  },
  name: string,
): NodePool | undefined {
  const pool = caches.nodePools.get({ name })
  const ref = pool?.spec.template.spec.nodeClassRef
  const isManaged = provider.nodeClasses.some((type) => type.group === ref?.group && type.kind === ref.kind)
  return isManaged ? pool : undefined
}

/** The node class that a pool names; undefined while there is none. */
export function nodeClassOf(
  { nodeClasses }: Pick<Caches, 'nodeClasses'>,
  pool: NodePool,
): NodeClass | undefined {
  const ref = pool.spec.template.spec.nodeClassRef
  const cache = nodeClasses.find(({ type }) => type.group === ref.group && type.kind === ref.kind)
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
