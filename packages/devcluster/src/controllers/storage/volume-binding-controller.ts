import {
  defaultStorageClass,
  kinds,
  type Node,
  type Pod,
  quantityNanos,
  storageClassNameOf,
} from '@tenon/api'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, type ObjectCache, splitKey } from '../loop/object-cache.ts'
import type { Outcome } from '../loop/reconcile-loop.ts'
import { nodeAllowed } from '../objects/node-matching.ts'
import {
  type Claim,
  type PersistentVolumeObject,
  type StorageClassObject,
  workloads,
} from '../objects/workloads.ts'
import { findVolume, isReservedFor } from './volume-matching.ts'

const component = 'persistentvolume-controller'
const selectedNodeAnnotation = 'volume.kubernetes.io/selected-node'
const provisionerAnnotation = 'volume.kubernetes.io/storage-provisioner'
const provisionedByAnnotation = 'pv.kubernetes.io/provisioned-by'
const bindCompletedAnnotation = 'pv.kubernetes.io/bind-completed'
const boundByControllerAnnotation = 'pv.kubernetes.io/bound-by-controller'
const noProvisioner = 'kubernetes.io/no-provisioner'
const zoneLabel = 'topology.kubernetes.io/zone'

/**
 * Binds claims to volumes, and simulates every CSI provisioner: volumes are created at once, or when a pod with the
 * claim has a node.
 */
export function volumeBinding(context: ControllerContext): void {
  const { store } = context
  const claims = store.cache(workloads.claim)
  const volumes = store.cache(workloads.volume)
  const classes = store.cache(workloads.storageClass)
  const nodes = store.cache(kinds.node)
  const pods = store.cache(kinds.pod)
  const podsByClaim = pods.index(claimsOfPod)
  const claimQueue = context.loop.queue('persistent-volume-claims', (key) =>
    new ClaimReconcile(context, { volumes, classes, nodes, podsByClaim }).run(key),
  )
  const volumeQueue = context.loop.queue('persistent-volumes', (name) => syncVolume(context, name))
  const addPending = () => {
    for (const claim of claims.values())
      if ((claim.spec.volumeName ?? '') === '') claimQueue.add(keyOf(claim))
  }
  claims.onChange((now, before) => {
    if (now !== undefined) claimQueue.add(keyOf(now))
    const volume = now?.spec.volumeName ?? before?.spec.volumeName
    if (volume !== undefined && volume !== '') volumeQueue.add(volume)
  })
  volumes.onChange((now, _before, latest) => {
    volumeQueue.add(latest.metadata.name)
    const reference = latest.spec.claimRef
    if (reference !== undefined) claimQueue.add(`${reference.namespace}/${reference.name}`)
    else if (now !== undefined) addPending()
  })
  classes.onChange(addPending)
  pods.onChange((now, before) => {
    if (now === undefined || now.spec.nodeName === before?.spec.nodeName) return
    for (const key of claimsOfPod(now)) claimQueue.add(key)
  })
}

/** Keys of the claims of a pod, including ephemeral ones. */
function claimsOfPod(pod: Pod): readonly string[] {
  const { namespace, name } = pod.metadata
  const keys: string[] = []
  for (const volume of pod.spec.volumes ?? []) {
    if (volume.persistentVolumeClaim !== undefined)
      keys.push(`${namespace}/${volume.persistentVolumeClaim.claimName}`)
    else if (volume.ephemeral !== undefined) keys.push(`${namespace}/${name}-${volume.name}`)
  }
  return keys
}

interface Observed {
  readonly volumes: ObjectCache<PersistentVolumeObject>
  readonly classes: ObjectCache<StorageClassObject>
  readonly nodes: ObjectCache<Node>
  readonly podsByClaim: Index<Pod>
}

class ClaimReconcile {
  readonly #context: ControllerContext
  readonly #observed: Observed

  constructor(context: ControllerContext, observed: Observed) {
    this.#context = context
    this.#observed = observed
  }

  run(key: string): Outcome {
    const { store } = this.#context
    const { namespace, name } = splitKey(key)
    const claim = store.get(workloads.claim, namespace, name)
    if (claim === undefined || claim.metadata.deletionTimestamp !== undefined) return undefined
    if (claim.metadata.annotations?.[bindCompletedAnnotation] !== undefined) {
      this.#syncBound(claim)
      return undefined
    }
    const className = storageClassNameOf(claim) ?? ''
    const storageClass = store.get(workloads.storageClass, undefined, className)
    const waits = storageClass?.volumeBindingMode === 'WaitForFirstConsumer'
    const node = this.#consumerNode(claim)
    const reserved = (claim.spec.volumeName ?? '') !== ''
    if (waits && node === undefined && !reserved) {
      this.#pend(claim, 'WaitForFirstConsumer', 'waiting for first consumer to be created before binding')
      return undefined
    }
    const reachable = [...this.#observed.volumes.values()].filter((volume) => isReachable(volume, node))
    const volume = findVolume(claim, reachable)
    if (volume !== undefined) this.#bind(claim, volume)
    else this.#provision(claim, storageClass, node)
    return undefined
  }

  /** A claim whose volume is gone is Lost; otherwise its status follows the volume. */
  #syncBound(claim: Claim): void {
    const volume = this.#observed.volumes.get(claim.spec.volumeName ?? '')
    if (volume === undefined) {
      if (claim.status?.phase === 'Lost') return
      this.#context.store.setStatus(workloads.claim, claim, { ...claim.status, phase: 'Lost' })
      this.#tell(
        claim,
        'Warning',
        'ClaimLost',
        'Bound claim has lost its PersistentVolume. Data on the volume is lost!',
      )
    } else if (isReservedFor(volume, claim)) {
      this.#bind(claim, this.#expanded(claim, volume))
    }
  }

  /** The volume, expanded to the current request of its claim. */
  #expanded(claim: Claim, volume: PersistentVolumeObject): PersistentVolumeObject {
    const asked = claim.spec.resources?.requests?.['storage']
    const present = volume.spec.capacity?.['storage']
    if (asked === undefined || present === undefined || volume.spec.csi === undefined) return volume
    if ((quantityNanos(asked) ?? 0n) <= (quantityNanos(present) ?? 0n)) return volume
    const capacity = { ...volume.spec.capacity, storage: asked }
    const grown = this.#context.store.modify(workloads.volume, volume, (latest) => ({
      ...latest,
      spec: { ...latest.spec, capacity },
    }))
    this.#tell(claim, 'Normal', 'VolumeResizeSuccessful', 'Resize volume succeeded')
    return grown ?? volume
  }

  #provision(claim: Claim, storageClass: StorageClassObject | undefined, node: Node | undefined): void {
    if (storageClass === undefined) {
      if (this.#assignDefaultClass(claim)) return
      const className = storageClassNameOf(claim) ?? ''
      if (className === '') {
        this.#pend(
          claim,
          'FailedBinding',
          'no persistent volumes available for this claim and no storage class is set',
        )
      } else {
        const message = `storageclass.storage.k8s.io "${className}" not found`
        this.#pend(claim, 'ProvisioningFailed', message, 'Warning')
      }
      return
    }
    if (storageClass.provisioner === noProvisioner) {
      this.#pend(claim, 'FailedBinding', 'no persistent volumes available for this claim')
      return
    }
    const { store } = this.#context
    const drafted = draftVolume(claim, storageClass, node)
    store.createIfAbsent(workloads.volume, drafted)
    const volume = store.get(workloads.volume, undefined, drafted.metadata.name) ?? drafted
    const message = `Successfully provisioned volume ${volume.metadata.name}`
    this.#tell(claim, 'Normal', 'ProvisioningSucceeded', message)
    this.#bind(claim, volume)
  }

  /** Sets the default class on claims that were created before it existed. */
  #assignDefaultClass(claim: Claim): boolean {
    if (storageClassNameOf(claim) !== undefined) return false
    const storageClassName = defaultStorageClass(this.#observed.classes.values())?.metadata.name
    if (storageClassName === undefined) return false
    this.#context.store.modify(workloads.claim, claim, (latest) => ({
      ...latest,
      spec: { ...latest.spec, storageClassName },
    }))
    return true
  }

  /** Binds both sides. Every step is repeated until it is done, so that a restart in between is harmless. */
  #bind(claim: Claim, volume: PersistentVolumeObject): void {
    const { store } = this.#context
    const { namespace = '', name, uid = '' } = claim.metadata
    const claimRef = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid }
    store.modify(workloads.volume, volume, (latest) =>
      latest.spec.claimRef?.uid === uid ? latest : { ...latest, spec: { ...latest.spec, claimRef } },
    )
    const provisioner = volume.metadata.annotations?.[provisionedByAnnotation]
    store.modify(workloads.claim, claim, (latest) => ({
      ...latest,
      metadata: {
        ...latest.metadata,
        annotations: {
          ...latest.metadata.annotations,
          [bindCompletedAnnotation]: 'yes',
          [boundByControllerAnnotation]: 'yes',
          ...(provisioner !== undefined && { [provisionerAnnotation]: provisioner }),
        },
      },
      spec: { ...latest.spec, volumeName: volume.metadata.name },
    }))
    const { accessModes, capacity } = volume.spec
    store.setStatus(workloads.claim, claim, {
      phase: 'Bound',
      ...(accessModes !== undefined && { accessModes }),
      ...(capacity !== undefined && { capacity }),
    })
  }

  #consumerNode(claim: Claim): Node | undefined {
    const selected = claim.metadata.annotations?.[selectedNodeAnnotation]
    if (selected !== undefined) return this.#observed.nodes.get(selected)
    for (const pod of this.#observed.podsByClaim.of(keyOf(claim))) {
      const node = this.#observed.nodes.get(pod.spec.nodeName ?? '')
      if (node !== undefined) return node
    }
    return undefined
  }

  #pend(claim: Claim, reason: string, message: string, type: 'Normal' | 'Warning' = 'Normal'): void {
    this.#context.store.setStatus(workloads.claim, claim, { ...claim.status, phase: 'Pending' })
    this.#tell(claim, type, reason, message)
  }

  #tell(claim: Claim, type: 'Normal' | 'Warning', reason: string, message: string): void {
    this.#context.events.record(component, claim, type, reason, message)
  }
}

function isReachable(volume: PersistentVolumeObject, node: Node | undefined): boolean {
  const required = volume.spec.nodeAffinity?.required
  if (node === undefined || required === undefined) return true
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required } }
  return nodeAllowed({ containers: [], affinity }, node)
}

/**
 * The volume that a provisioner would create. Its name contains the claim's uid, so that it is created only once.
 */
function draftVolume(
  claim: Claim,
  storageClass: StorageClassObject,
  node: Node | undefined,
): PersistentVolumeObject {
  const { namespace = '', uid = '' } = claim.metadata
  const name = `pvc-${uid}`
  const zone = node?.metadata.labels?.[zoneLabel]
  const storage = claim.spec.resources?.requests?.['storage']
  const { accessModes, volumeMode } = claim.spec
  const storageClassName = storageClassNameOf(claim)
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name, annotations: { [provisionedByAnnotation]: storageClass.provisioner } },
    spec: {
      ...(storage !== undefined && { capacity: { storage } }),
      ...(accessModes !== undefined && { accessModes }),
      ...(volumeMode !== undefined && { volumeMode }),
      ...(storageClassName !== undefined && { storageClassName }),
      persistentVolumeReclaimPolicy: storageClass.reclaimPolicy ?? 'Delete',
      claimRef: {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        namespace,
        name: claim.metadata.name,
        uid,
      },
      csi: { driver: storageClass.provisioner, volumeHandle: name },
      ...(zone !== undefined && {
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [
              { matchExpressions: [{ key: zoneLabel, operator: 'In' as const, values: [zone] }] },
            ],
          },
        },
      }),
    },
  }
}

/** The phase of a volume, and its reclaim policy once its claim is gone. */
function syncVolume(context: ControllerContext, name: string): Outcome {
  const { store } = context
  const volume = store.get(workloads.volume, undefined, name)
  if (volume === undefined || volume.metadata.deletionTimestamp !== undefined) return undefined
  const reference = volume.spec.claimRef
  const setPhase = (phase: string) => store.setStatus(workloads.volume, volume, { ...volume.status, phase })
  if (reference?.uid === undefined || reference.uid === '') {
    setPhase('Available')
    return undefined
  }
  const claim = store.get(workloads.claim, reference.namespace, reference.name ?? '')
  if (claim?.metadata.uid === reference.uid) {
    setPhase('Bound')
    return undefined
  }
  setPhase('Released')
  if (volume.spec.persistentVolumeReclaimPolicy === 'Delete') store.delete(workloads.volume, volume)
  return undefined
}
