/** Pods that are made for the room of a ProvisioningRequest (gangs.md 1). */
import type { Pod } from '../objects.ts'
import { ownValue } from '../own.ts'
import { consumeAnnotations } from './request-pods.ts'

/** `namespace/name` of the request whose room a pod is made for; of a pod that cannot be read, as far as it says. */
export function consumedBy({ metadata }: Pod): string | undefined {
  for (const key of consumeAnnotations) {
    const name: unknown = ownValue(metadata.annotations, key)
    if (typeof name === 'string' && name !== '') return `${metadata.namespace ?? ''}/${name}`
  }
  return undefined
}
