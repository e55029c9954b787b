import { kinds, type Pod } from '@tenon/api'
import { podGroupFinalizer, podGroupKind, servesPodGroups } from '../../pod-group-kind.ts'
import type { ControllerContext } from '../context.ts'
import { splitKey } from '../loop/object-cache.ts'
import { isFinished } from '../objects/pods.ts'

/**
 * Removes the finalizer of a deleted PodGroup once all of its pods have finished, like Kubernetes (gangs.md 5.2).
 */
export function podGroupProtection({ store, loop }: ControllerContext): void {
  if (!servesPodGroups(store.api)) return
  const pods = store.cache(kinds.pod)
  const groups = store.cache(podGroupKind)
  const ofGroup = pods.index(groupKeys)
  const queue = loop.queue('podgroup-protection', (key) => {
    const { namespace, name } = splitKey(key)
    const group = store.get(podGroupKind, namespace, name)
    if (group?.metadata.deletionTimestamp === undefined) return undefined
    if ([...ofGroup.of(key)].some((pod) => !isFinished(pod))) return undefined
    store.modify(podGroupKind, group, (latest) => {
      const { finalizers = [] } = latest.metadata
      if (!finalizers.includes(podGroupFinalizer)) return latest
      const others = finalizers.filter((each) => each !== podGroupFinalizer)
      return { ...latest, metadata: { ...latest.metadata, finalizers: others } }
    })
    return undefined
  })
  groups.onChange((now) => {
    if (now?.metadata.deletionTimestamp !== undefined)
      queue.add(keysOf(now.metadata.namespace, now.metadata.name))
  })
  pods.onChange((_, before, latest) => {
    for (const key of groupKeys(before ?? latest)) queue.add(key)
  })
}

function keysOf(namespace: string | undefined, name: string): string {
  return `${namespace ?? ''}/${name}`
}

function groupKeys({ metadata, spec }: Pod): readonly string[] {
  const name = spec.schedulingGroup?.podGroupName ?? ''
  return name === '' ? [] : [keysOf(metadata.namespace, name)]
}
