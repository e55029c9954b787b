import { ownValue } from './own.ts'
import { parseResource } from './quantity.ts'
import type { CsiStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts'

/** Named the class before there was a field for it. */
/** The largest volume in bytes for which a CSIStorageCapacity has room; undefined if it does not say. */
export function largestVolume({ maximumVolumeSize, capacity }: CsiStorageCapacity): number | undefined {
  const size = maximumVolumeSize ?? capacity
  return size === undefined ? undefined : parseResource('storage', size)
}

const betaAnnotation = 'volume.beta.kubernetes.io/storage-class'

/**
 * The StorageClass of a claim or a volume; the beta annotation takes precedence over the field, as in
 * Kubernetes. Undefined: none is named, so a claim may get the default class. Empty: explicitly none.
 */
export function storageClassNameOf(object: PersistentVolumeClaim | PersistentVolume): string | undefined {
  const annotations = object.metadata.annotations
  if (annotations !== undefined && Object.hasOwn(annotations, betaAnnotation))
    return annotations[betaAnnotation]
  return object.spec.storageClassName
}

const defaultAnnotations = [
  'storageclass.kubernetes.io/is-default-class',
  'storageclass.beta.kubernetes.io/is-default-class',
]

/** The default class: the newest of those marked as default, then the first by name. */
export function defaultStorageClass(classes: Iterable<StorageClass>): StorageClass | undefined {
  let best: StorageClass | undefined
  for (const candidate of classes) {
    const { annotations } = candidate.metadata
    if (!defaultAnnotations.some((key) => ownValue(annotations, key) === 'true')) continue
    if (best === undefined || goesBefore(candidate, best)) best = candidate
  }
  return best
}

function goesBefore(a: StorageClass, b: StorageClass): boolean {
  const [left = '', right = ''] = [a.metadata.creationTimestamp, b.metadata.creationTimestamp]
  return left === right ? a.metadata.name < b.metadata.name : left > right
}
