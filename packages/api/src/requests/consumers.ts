/** Which pods consume the capacity of a ProvisioningRequest (gangs.md 1). */
import type { Pod } from '../objects.ts'
import { ownValue } from '../own.ts'
import { classAnnotations, consumeAnnotations } from './request-pods.ts'

/** `namespace/name` of the request whose capacity a pod consumes. Malformed pods do not throw. */
export function consumedBy(pod: Pod): string | undefined {
  const name = textOf(pod, consumeAnnotations)
  return name === undefined ? undefined : `${pod.metadata.namespace ?? ''}/${name}`
}

/** The provisioning class that the pod names. */
export function consumedClassOf(pod: Pod): string | undefined {
  return textOf(pod, classAnnotations)
}

/** The value of the first of these annotations that is set. */
function textOf({ metadata }: Pod, keys: readonly string[]): string | undefined {
  for (const key of keys) {
    const text: unknown = ownValue(metadata.annotations, key)
    if (typeof text === 'string' && text !== '') return text
  }
  return undefined
}
