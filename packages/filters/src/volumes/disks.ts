import type { Pod, Volume } from '@tenon/api'
import type { Rejection } from '../rules/rejection.ts'

interface Access {
  readonly readOnly?: boolean
}

/** A volume of the kinds of which Kubernetes still looks after who mounts them. */
export interface Disk {
  readonly gcePersistentDisk?: Access & { readonly pdName: string }
  readonly awsElasticBlockStore?: Access & { readonly volumeID: string }
  readonly iscsi?: Access & { readonly iqn: string }
  readonly rbd?: Access & {
    readonly monitors: readonly string[]
    readonly image: string
    readonly pool?: string
  }
}

const rejection: Rejection = {
  filter: 'VolumeRestrictions',
  reasons: ['node(s) had no available disk'],
  helpedByPreemption: true,
}

/** Volumes that name a disk themselves, without a claim, and can be mounted by one pod of a node. */
export function disksOf(pod: Pod): readonly Disk[] {
  const volumes = (pod.spec.volumes ?? []) as readonly (Volume & Disk)[]
  return volumes.filter(
    ({ gcePersistentDisk, awsElasticBlockStore, iscsi, rbd }) =>
      (gcePersistentDisk ?? awsElasticBlockStore ?? iscsi ?? rbd) !== undefined,
  )
}

/** Keeps a pod off a node where one of `others`, the pods there, mounts one of its disks. */
export function diskRejection(
  disks: readonly Disk[],
  others: Iterable<{ readonly disks: readonly Disk[] }>,
): Rejection | undefined {
  if (disks.length === 0) return undefined
  for (const other of others) {
    if (disks.some((disk) => other.disks.some((taken) => conflict(disk, taken)))) return rejection
  }
  return undefined
}

/** The rules differ by kind: an EBS volume conflicts even when both only read. */
function conflict(one: Disk, other: Disk): boolean {
  const { gcePersistentDisk: gce, awsElasticBlockStore: ebs, iscsi, rbd } = one
  return (
    (gce !== undefined &&
      gce.pdName === other.gcePersistentDisk?.pdName &&
      writes(gce, other.gcePersistentDisk)) ||
    (ebs !== undefined && ebs.volumeID === other.awsElasticBlockStore?.volumeID) ||
    (iscsi !== undefined && iscsi.iqn === other.iscsi?.iqn && writes(iscsi, other.iscsi)) ||
    (rbd !== undefined && other.rbd !== undefined && isSameImage(rbd, other.rbd) && writes(rbd, other.rbd))
  )
}

function writes(one: Access, other: Access): boolean {
  return !(one.readOnly === true && other.readOnly === true)
}

function isSameImage(one: NonNullable<Disk['rbd']>, other: NonNullable<Disk['rbd']>): boolean {
  return (
    (one.pool ?? 'rbd') === (other.pool ?? 'rbd') &&
    one.image === other.image &&
    one.monitors.some((monitor) => other.monitors.includes(monitor))
  )
}
