import type { KubeObject, OwnerReference } from './objects.ts'

/** What made the object and looks after it, if anything does. */
export function controllerOf({ metadata }: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}
