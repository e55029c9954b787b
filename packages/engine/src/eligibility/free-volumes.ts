/** Volumes that nobody provisions: which of those that exist a claim can be bound to (scheduling.md 8). */
import {
  matchesSelector,
  parseResource,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
  storageClassNameOf,
} from '@tenon/api'
import type { VolumeLookups } from './lookups.ts'

/** Whether volumes of the class have to be there before a claim can be bound. */
export function provisionsNothing({ provisioner }: StorageClass): boolean {
  return provisioner === 'kubernetes.io/no-provisioner'
}

/** The volumes that Kubernetes may bind the claim to, in the order of its choice: the smallest first. */
function volumesFor(claim: PersistentVolumeClaim, lookups: VolumeLookups): readonly PersistentVolume[] {
  const storageClass = storageClassNameOf(claim) ?? ''
  const suiting = lookups.volumesOfClass(storageClass).filter((volume) => suits(volume, claim))
  const reserved = suiting.filter(({ spec }) => spec.claimRef !== undefined)
  return (reserved.length > 0 ? reserved : suiting).toSorted(
    (a, b) =>
      sizeOf(a.spec.capacity) - sizeOf(b.spec.capacity) || (a.metadata.name < b.metadata.name ? -1 : 1),
  )
}

function suits(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const { spec, metadata, status } = volume
  const modes = spec.accessModes ?? []
  return (
    metadata.deletionTimestamp === undefined &&
    isFreeFor(volume, claim) &&
    (status?.phase ?? 'Available') === 'Available' &&
    (spec.volumeMode ?? 'Filesystem') === (claim.spec.volumeMode ?? 'Filesystem') &&
    (claim.spec.accessModes ?? []).every((mode) => modes.includes(mode)) &&
    sizeOf(spec.capacity) >= sizeOf(claim.spec.resources?.requests) &&
    (claim.spec.selector === undefined || matchesSelector(claim.spec.selector, metadata.labels))
  )
}

/** A volume may have been reserved for a claim by hand. */
function isFreeFor({ spec: { claimRef } }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  if (claimRef === undefined) return true
  const { namespace = '', name, uid = metadata.uid } = claimRef
  return name === metadata.name && namespace === (metadata.namespace ?? '') && uid === metadata.uid
}

function sizeOf(amounts: Readonly<Record<string, string>> | undefined): number {
  return parseResource('storage', amounts?.['storage'] ?? '0')
}

/**
 * Volumes that claims of one decision can still be bound to. What a pod is decided about with is not offered to the
 * claims of pods after it.
 */
export class FreeVolumes {
  readonly #lookups: VolumeLookups
  /** Claims that wait for a volume, by StorageClass. */
  readonly #waiting = new Map<string, Set<string>>()
  /** The claim that a volume is kept for. */
  readonly #keptFor = new Map<string, string>()

  constructor(lookups: VolumeLookups) {
    this.#lookups = lookups
  }

  /** Notes a claim that waits for a volume of a class that provisions nothing. */
  note(claim: PersistentVolumeClaim): void {
    const storageClass = storageClassNameOf(claim) ?? ''
    const waiting = this.#waiting.get(storageClass) ?? new Set()
    this.#waiting.set(storageClass, waiting.add(keyOf(claim)))
  }

  /** The volumes that the claim may get, smallest first. */
  volumesFor(claim: PersistentVolumeClaim): readonly PersistentVolume[] {
    const key = keyOf(claim)
    return volumesFor(claim, this.#lookups).filter(
      ({ metadata }) => (this.#keptFor.get(metadata.name) ?? key) === key,
    )
  }

  /** Whether other claims may want the same volumes. */
  isContested(claim: PersistentVolumeClaim): boolean {
    const waiting = this.#waiting.get(storageClassNameOf(claim) ?? '')
    return (waiting?.size ?? 0) > 1
  }

  /** Keeps a volume for a claim. */
  keep(volume: string, claim: PersistentVolumeClaim): void {
    this.#keptFor.set(volume, keyOf(claim))
  }
}

function keyOf({ metadata }: PersistentVolumeClaim): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}
