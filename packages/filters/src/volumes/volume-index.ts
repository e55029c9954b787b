import {
  type CsiDriver,
  type CsiNode,
  type CsiStorageCapacity,
  type KubeObject,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type StorageClass,
  type VolumeAttachment,
  ownValue,
  storageClassNameOf,
} from '@tenon/api'

const bindCompletedAnnotation = 'pv.kubernetes.io/bind-completed'
const selectedNodeAnnotation = 'volume.kubernetes.io/selected-node'

/** Claims, volumes, storage classes and CSI limits by name. */
export class VolumeIndex {
  readonly #claims = new Map<string, PersistentVolumeClaim>()
  readonly #volumes = new Map<string, PersistentVolume>()
  readonly #classes = new Map<string, StorageClass>()
  readonly #csiNodes = new Map<string, CsiNode>()
  readonly #csiDrivers = new Map<string, CsiDriver>()
  /** By StorageClass, then by namespace and name. */
  readonly #capacities = new Map<string, Map<string, CsiStorageCapacity>>()
  /** By node, then by name. */
  readonly #attachments = new Map<string, Map<string, VolumeAttachment>>()

  setClaim(claim: PersistentVolumeClaim): void {
    this.#claims.set(keyOf(claim), claim)
  }

  removeClaim(claim: PersistentVolumeClaim): void {
    this.#claims.delete(keyOf(claim))
  }

  setVolume(volume: PersistentVolume): void {
    this.#volumes.set(volume.metadata.name, volume)
  }

  removeVolume(volume: PersistentVolume): void {
    this.#volumes.delete(volume.metadata.name)
  }

  setClass(storageClass: StorageClass): void {
    this.#classes.set(storageClass.metadata.name, storageClass)
  }

  removeClass(storageClass: StorageClass): void {
    this.#classes.delete(storageClass.metadata.name)
  }

  setCsiNode(csiNode: CsiNode): void {
    this.#csiNodes.set(csiNode.metadata.name, csiNode)
  }

  removeCsiNode(csiNode: CsiNode): void {
    this.#csiNodes.delete(csiNode.metadata.name)
  }

  setCsiDriver(csiDriver: CsiDriver): void {
    this.#csiDrivers.set(csiDriver.metadata.name, csiDriver)
  }

  removeCsiDriver(csiDriver: CsiDriver): void {
    this.#csiDrivers.delete(csiDriver.metadata.name)
  }

  /** Whether pods with volumes of the driver need a node that runs it. */
  isRequired(driver: string): boolean {
    return this.#csiDrivers.get(driver)?.spec.preventPodSchedulingIfMissing === true
  }

  setCapacity(capacity: CsiStorageCapacity): void {
    const { storageClassName } = capacity
    const ofClass = this.#capacities.get(storageClassName) ?? new Map<string, CsiStorageCapacity>()
    this.#capacities.set(storageClassName, ofClass.set(keyOf(capacity), capacity))
  }

  removeCapacity(capacity: CsiStorageCapacity): void {
    this.#capacities.get(capacity.storageClassName)?.delete(keyOf(capacity))
  }

  /** What the driver of the class has published; undefined if it does not publish capacity. */
  capacitiesOf({ metadata, provisioner }: StorageClass): readonly CsiStorageCapacity[] | undefined {
    if (this.#csiDrivers.get(provisioner)?.spec.storageCapacity !== true) return undefined
    return [...(this.#capacities.get(metadata.name)?.values() ?? [])]
  }

  setAttachment(attachment: VolumeAttachment): void {
    const { nodeName } = attachment.spec
    const ofNode = this.#attachments.get(nodeName) ?? new Map<string, VolumeAttachment>()
    this.#attachments.set(nodeName, ofNode.set(attachment.metadata.name, attachment))
  }

  removeAttachment({ spec, metadata }: VolumeAttachment): void {
    const ofNode = this.#attachments.get(spec.nodeName)
    ofNode?.delete(metadata.name)
    if (ofNode?.size === 0) this.#attachments.delete(spec.nodeName)
  }

  /** Handles of a CSI driver's volumes that are attached to a node, whether or not a pod uses them. */
  attachedTo(nodeName: string, driver: string): readonly string[] {
    return [...(this.#attachments.get(nodeName)?.values() ?? [])].flatMap(({ spec }) => {
      if (spec.attacher !== driver) return []
      const name = spec.source.persistentVolumeName
      const csi = name === undefined ? undefined : this.volume(name)?.spec.csi
      return name === undefined || csi === undefined ? [] : [csi.volumeHandle ?? name]
    })
  }

  claim(namespace: string, name: string): PersistentVolumeClaim | undefined {
    return this.#claims.get(`${namespace}/${name}`)
  }

  volume(name: string): PersistentVolume | undefined {
    return this.#volumes.get(name)
  }

  volumes(): Iterable<PersistentVolume> {
    return this.#volumes.values()
  }

  /** The class of a claim; undefined for a claim that still waits for the default class. */
  classOf(claim: PersistentVolumeClaim): StorageClass | undefined {
    const name = storageClassNameOf(claim)
    return name === undefined ? undefined : this.#classes.get(name)
  }

  csiNode(nodeName: string): CsiNode | undefined {
    return this.#csiNodes.get(nodeName)
  }

  /** The CSI driver and handle of the claim's volume on a node; undefined if it is not a CSI volume. */
  csiVolume(
    namespace: string,
    name: string,
  ): { readonly driver: string; readonly handle: string } | undefined {
    const claim = this.claim(namespace, name)
    if (claim === undefined) return undefined
    if (claim.spec.volumeName === undefined || claim.spec.volumeName === '') {
      const driver = this.classOf(claim)?.provisioner
      return driver === undefined ? undefined : { driver, handle: `claim:${namespace}/${name}` }
    }
    const volume = this.volume(claim.spec.volumeName)
    const csi = volume?.spec.csi
    return csi === undefined
      ? undefined
      : { driver: csi.driver, handle: csi.volumeHandle ?? claim.spec.volumeName }
  }
}

/** How many volumes of a CSI driver fit; undefined if no limit is known. */
export function volumeLimit({ spec }: CsiNode, driver: string): number | undefined {
  return spec.drivers?.find((one) => one.name === driver)?.allocatable?.count
}

/** The patch with the node that a provisioner must create the volume for. */
export function selectedNodePatch(nodeName: string): object {
  return { metadata: { annotations: { [selectedNodeAnnotation]: nodeName } } }
}

/** The node that was selected for a claim earlier. */
export function selectedNode(claim: PersistentVolumeClaim): string | undefined {
  return claim.metadata.annotations?.[selectedNodeAnnotation]
}

/** Whether the volume controller has completed the binding of the claim. */
export function isBindingCompleted(claim: PersistentVolumeClaim): boolean {
  return ownValue(claim.metadata.annotations, bindCompletedAnnotation) !== undefined
}

function keyOf(object: KubeObject): string {
  return `${object.metadata.namespace ?? ''}/${object.metadata.name}`
}
