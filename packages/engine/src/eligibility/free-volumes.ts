/**
 * Existing volumes that claims can be bound to, for StorageClasses without a provisioner (scheduling.md 8).
 */
import {
  matchesSelector,
  parseResource,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
  storageClassNameOf,
} from '@tenon/api'
import type { VolumeLookups } from './lookups.ts'

/** Whether volumes of the class must exist before a claim can be bound (`kubernetes.io/no-provisioner`). */
export function hasNoProvisioner({ provisioner }: StorageClass): boolean {
  return provisioner === 'kubernetes.io/no-provisioner'
}

/** The volumes that Kubernetes may bind the claim to, smallest first, as the volume controller tries them. */
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

/** An administrator may have reserved the volume for a claim with `claimRef`. */
function isFreeFor({ spec: { claimRef } }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  if (claimRef === undefined) return true
  const { namespace = '', name, uid = metadata.uid } = claimRef
  return name === metadata.name && namespace === (metadata.namespace ?? '') && uid === metadata.uid
}

function sizeOf(amounts: Readonly<Record<string, string>> | undefined): number {
  return parseResource('storage', amounts?.['storage'] ?? '0')
}

/**
 * Volumes that claims can still be bound to in one decision. A volume that is kept for the claim of one pod
 * is not offered to later pods.
 */
export class FreeVolumes {
  readonly #lookups: VolumeLookups
  /** Unbound claims, by StorageClass. */
  readonly #waiting = new Map<string, Set<string>>()
  /** The claim that each volume is kept for. */
  readonly #keptFor = new Map<string, string>()

  constructor(lookups: VolumeLookups) {
    this.#lookups = lookups
  }

  /** Registers an unbound claim of a class without a provisioner. */
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

  /** Whether other claims may need the same volumes. */
  isContested(claim: PersistentVolumeClaim): boolean {
    const waiting = this.#waiting.get(storageClassNameOf(claim) ?? '')
    return (waiting?.size ?? 0) > 1
  }

  keep(volume: string, claim: PersistentVolumeClaim): void {
    this.#keptFor.set(volume, keyOf(claim))
  }
}

function keyOf({ metadata }: PersistentVolumeClaim): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`
}
