import { storageClassNameOf, ownValue, matchesSelector } from '@tenon/api'
import type { Claim, PersistentVolumeObject } from '../objects/workloads.ts'

const units: Readonly<Record<string, number>> = {
  '': 1,
  k: 1e3,
  M: 1e6,
  G: 1e9,
  T: 1e12,
  P: 1e15,
  Ki: 2 ** 10,
  Mi: 2 ** 20,
  Gi: 2 ** 30,
  Ti: 2 ** 40,
  Pi: 2 ** 50,
}

/** Bytes of a storage quantity; NaN if it is invalid. */
function bytesOf(quantity: string | undefined): number {
  const [, number, unit = ''] = /^([0-9.]+(?:e[0-9]+)?)([kKMGTP]i?)?$/.exec(quantity ?? '') ?? []
  return Number(number) * (ownValue(units, unit) ?? Number.NaN)
}

/** The smallest free volume that satisfies a claim; one that is reserved for it comes first. */
export function findVolume(
  claim: Claim,
  volumes: Iterable<PersistentVolumeObject>,
): PersistentVolumeObject | undefined {
  let best: PersistentVolumeObject | undefined
  for (const volume of volumes) {
    if (isReservedFor(volume, claim)) return volume
    if (volume.spec.claimRef !== undefined || !satisfies(claim, volume)) continue
    if (best === undefined || isSmaller(volume, best)) best = volume
  }
  return best
}

/**
 * Whether a volume is bound to or reserved for exactly this claim (an absent uid means reserved in advance).
 */
export function isReservedFor(volume: PersistentVolumeObject, claim: Claim): boolean {
  const reference = volume.spec.claimRef
  if (reference?.name !== claim.metadata.name || reference.namespace !== claim.metadata.namespace)
    return false
  return reference.uid === undefined || reference.uid === '' || reference.uid === claim.metadata.uid
}

function satisfies(claim: Claim, volume: PersistentVolumeObject): boolean {
  if (volume.metadata.deletionTimestamp !== undefined) return false
  const { volumeName, accessModes = [], selector, volumeMode = 'Filesystem' } = claim.spec
  if (volumeName !== undefined && volumeName !== '') return volume.metadata.name === volumeName
  if ((storageClassNameOf(volume) ?? '') !== (storageClassNameOf(claim) ?? '')) return false
  if ((volume.spec.volumeMode ?? 'Filesystem') !== volumeMode) return false
  if (selector !== undefined && !matchesSelector(selector, volume.metadata.labels)) return false
  if (!accessModes.every((mode) => volume.spec.accessModes?.includes(mode))) return false
  return bytesOf(volume.spec.capacity?.['storage']) >= bytesOf(claim.spec.resources?.requests?.['storage'])
}

function isSmaller(a: PersistentVolumeObject, b: PersistentVolumeObject): boolean {
  const left = bytesOf(a.spec.capacity?.['storage'])
  const right = bytesOf(b.spec.capacity?.['storage'])
  return left < right || (left === right && a.metadata.name < b.metadata.name)
}
