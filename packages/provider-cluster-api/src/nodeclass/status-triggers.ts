/** What triggers an update of the status of ClusterAPINodeClasses. */
import type { Cache, Controller } from '@tenon/kube'
import type { Hub, OpenHub } from '../hub/hub.ts'
import { isNews } from './status-controller.ts'
import type { ClusterAPINodeClass } from '../node-class.ts'

/** Replicas change often while nodes are added or removed; one update covers many changes. */
const gatherMs = 2000

/**
 * Enqueues node classes that change, and all of them after a change on the hub. Returns a function that ends this.
 */
export function followNodeClasses(
  controller: Pick<Controller, 'enqueue'>,
  nodeClasses: Pick<Cache<ClusterAPINodeClass>, 'list' | 'onChange'>,
  hub: Pick<Hub, 'state' | 'onOpen'>,
): () => void {
  let isStopped = false
  const unsubscribe = [
    nodeClasses.onChange((change) => {
      if (change.kind !== 'updated' || isNews(change.object, change.old))
        controller.enqueue(change.object.metadata.name)
    }),
  ]
  const lookAtAll = () => {
    for (const { metadata } of nodeClasses.list()) controller.enqueue(metadata.name, gatherMs)
  }
  const follow = ({ caches }: OpenHub) => {
    if (isStopped) return
    unsubscribe.push(caches.machineDeployments.onChange(lookAtAll), caches.clusters.onChange(lookAtAll))
  }
  if (hub.state.kind === 'open') follow(hub.state.hub)
  else
    hub.onOpen((opened) => {
      follow(opened)
      lookAtAll()
    })
  return () => {
    isStopped = true
    for (const cancel of unsubscribe) cancel()
  }
}
