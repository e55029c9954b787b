import { kinds, type Pod } from '@tenon/api'
import type { ControllerContext } from '../context.ts'
import { keyOf, splitKey } from '../loop/object-cache.ts'
import { controllerReference } from '../objects/owners.ts'
import { isFinished, isTerminating } from '../objects/pods.ts'
import { type Claim, workloads } from '../objects/workloads.ts'

/** Creates the claims of generic ephemeral volumes, which are owned by their pod. */
export function ephemeralVolumes(context: ControllerContext): void {
  const { store } = context
  const pods = store.cache(kinds.pod)
  const claims = store.cache(workloads.claim)
  const queue = context.loop.queue('ephemeral-volumes', (key) => {
    const { namespace, name } = splitKey(key)
    const pod = store.get(kinds.pod, namespace, name)
    if (pod === undefined || isTerminating(pod) || isFinished(pod)) return undefined
    for (const claim of claimsOf(pod)) store.createIfAbsent(workloads.claim, claim)
    return undefined
  })
  pods.onChange((now, before) => {
    if (now !== undefined && before === undefined && claimsOf(now).length > 0) queue.add(keyOf(now))
  })
  claims.onChange((now, before) => {
    const owner = before?.metadata.ownerReferences?.find(({ kind }) => kind === 'Pod')
    // A deleted claim is created again.
    if (now === undefined && owner !== undefined) queue.add(`${before?.metadata.namespace}/${owner.name}`)
  })
}

function claimsOf(pod: Pod): readonly Claim[] {
  const { namespace = '', name } = pod.metadata
  return (pod.spec.volumes ?? []).flatMap((volume): readonly Claim[] => {
    const template = volume.ephemeral?.volumeClaimTemplate
    if (template === undefined) return []
    const { labels, annotations } = template.metadata ?? {}
    return [
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: {
          name: `${name}-${volume.name}`,
          namespace,
          ...(labels !== undefined && { labels }),
          ...(annotations !== undefined && { annotations }),
          ownerReferences: [controllerReference(pod, kinds.pod)],
        },
        spec: template.spec,
      },
    ]
  })
}
