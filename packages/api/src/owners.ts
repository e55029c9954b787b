import type { KubeObject, OwnerReference } from './objects.ts'

/** The owner reference with `controller: true`, if any. */
export function controllerOf({ metadata }: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}
