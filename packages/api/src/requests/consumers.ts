/** Pods that are made for the room of a ProvisioningRequest (gangs.md 1). */
import type { Pod } from '../objects.ts'
import { ownValue } from '../own.ts'
import { classAnnotations, consumeAnnotations } from './request-pods.ts'

/** `namespace/name` of the request whose room a pod is made for; of a pod that cannot be read, as far as it says. */
export function consumedBy(pod: Pod): string | undefined {
  const name = textOf(pod, consumeAnnotations)
  return name === undefined ? undefined : `${pod.metadata.namespace ?? ''}/${name}`
}

/** The class of that request, as the pod tells it. */
export function consumedClassOf(pod: Pod): string | undefined {
  return textOf(pod, classAnnotations)
}

/** The first of these annotations that has a value. */
function textOf({ metadata }: Pod, keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const text: unknown = ownValue(metadata.annotations, key)
    if (typeof text === 'string' && text !== '') return text
  }
  return undefined
}
