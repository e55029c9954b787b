import type { Pod, Volume } from '@tenon/api'

interface Access {
  readonly readOnly?: boolean
}

/** A volume that only one pod of a node may mount (kube-scheduler's VolumeRestrictions plugin). */
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

/** Such volumes of a pod that have no claim. */
export function disksOf(pod: Pod): readonly Disk[] {
  const volumes = (pod.spec.volumes ?? []) as readonly (Volume & Disk)[]
  return volumes.filter(
    ({ gcePersistentDisk, awsElasticBlockStore, iscsi, rbd }) =>
      (gcePersistentDisk ?? awsElasticBlockStore ?? iscsi ?? rbd) !== undefined,
  )
}

/** Whether two pods of one node cannot both mount these. An EBS volume conflicts even if both only read. */
export function disksConflict(one: Disk, other: Disk): boolean {
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
