import {
  type CsiStorageCapacity,
  labels,
  largestVolume,
  matchesSelector,
  meetsNodeSelectorTerm,
  normalizedLabel,
  type PersistentVolume,
  type PersistentVolumeClaim,
  parseResource,
  type StorageClass,
  storageClassNameOf,
  ownValue,
} from '@tenon/api'
import type { ClusterIndex } from '../cluster/cluster-index.ts'
import type { NodeEntry } from '../cluster/node-entry.ts'
import type { PodFacts } from '../pods/pod-facts.ts'
import type { Rejection } from '../rejection.ts'
import { labelMatcher } from '../pods/selectors.ts'
import { isBindingCompleted, selectedNode, type VolumeIndex, volumeLimit } from './volume-index.ts'

const noProvisioner = 'kubernetes.io/no-provisioner'
const topologyLabels = [
  labels.zone,
  labels.region,
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
]

/** A claim that is bound where its first pod runs. */
interface WaitingClaim {
  readonly claim: PersistentVolumeClaim
  readonly storageClass: StorageClass
}

/** What a pod's claims require of its node. */
export interface VolumePlan {
  /** Set if the pod can run on no node. */
  readonly rejection?: Rejection
  readonly bound: readonly PersistentVolume[]
  readonly waiting: readonly WaitingClaim[]
  /** ReadWriteOncePod claims, as `namespace/name`. */
  readonly exclusive: readonly string[]
}

const noVolumes: VolumePlan = { bound: [], waiting: [], exclusive: [] }

/** Looks up a pod's claims. */
export function volumePlan(facts: PodFacts, volumes: VolumeIndex): VolumePlan {
  if (facts.claims.length === 0) return noVolumes
  const bound: PersistentVolume[] = []
  const waiting: WaitingClaim[] = []
  const exclusive: string[] = []
  for (const { name, ephemeral } of facts.claims) {
    const claim = volumes.claim(facts.namespace, name)
    if (claim === undefined) return unresolvable(missingClaim(name, ephemeral))
    if (ephemeral && !isOwnedBy(claim, facts)) return unresolvable(foreignClaim(claim, facts))
    if (claim.metadata.deletionTimestamp !== undefined) {
      return unresolvable(`persistentvolumeclaim "${name}" is being deleted`)
    }
    if (claim.spec.accessModes?.includes('ReadWriteOncePod')) exclusive.push(`${facts.namespace}/${name}`)
    const volumeName = claim.spec.volumeName ?? ''
    if (claim.status?.phase === 'Lost') {
      return unresolvable(
        `persistentvolumeclaim "${name}" bound to non-existent persistentvolume "${volumeName}"`,
      )
    }
    if (volumeName !== '' && isBindingCompleted(claim)) {
      const volume = volumes.volume(volumeName)
      if (volume === undefined) {
        return unresolvable('node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)')
      }
      bound.push(volume)
      continue
    }
    const storageClass = volumes.classOf(claim)
    // A claim with a `volumeName` waits for the volume controller, whatever its class.
    if (volumeName !== '' || storageClass?.volumeBindingMode !== 'WaitForFirstConsumer') {
      return unresolvable('pod has unbound immediate PersistentVolumeClaims')
    }
    waiting.push({ claim, storageClass })
  }
  return { bound, waiting, exclusive }
}

function missingClaim(name: string, ephemeral: boolean): string {
  return ephemeral
    ? `waiting for ephemeral volume controller to create the persistentvolumeclaim "${name}"`
    : `persistentvolumeclaim "${name}" not found`
}

function isOwnedBy({ metadata }: PersistentVolumeClaim, { uid }: PodFacts): boolean {
  return metadata.ownerReferences?.some((owner) => owner.controller === true && owner.uid === uid) === true
}

function foreignClaim({ metadata }: PersistentVolumeClaim, { namespace, name }: PodFacts): string {
  const claim = `${metadata.namespace ?? ''}/${metadata.name}`
  return `PVC ${claim} was not created for pod ${namespace}/${name} (pod is not owner)`
}

function unresolvable(reason: string): VolumePlan {
  return {
    ...noVolumes,
    rejection: { filter: 'VolumeBinding', reasons: [reason], helpedByPreemption: false },
  }
}

/** ReadWriteOncePod: rejects the pod if any pod of the cluster uses the claim. */
export function exclusiveClaimRejection(
  plan: VolumePlan,
  facts: PodFacts,
  index: ClusterIndex,
): Rejection | undefined {
  const taken = plan.exclusive.some((claim) =>
    [...(index.claimUsers(claim) ?? [])].some((uid) => uid !== facts.uid),
  )
  return taken ? rwopRejection : undefined
}

const rwopRejection: Rejection = {
  filter: 'VolumeRestrictions',
  reasons: ['node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode'],
  helpedByPreemption: true,
}

/**
 * CSI drivers and their limits: distinct volumes of each driver, including those on the node and those attached to it. A
 * new node is assumed to get every driver, unless it comes with a CSINode.
 */
export function volumeLimitRejection(
  facts: PodFacts,
  entry: NodeEntry,
  volumes: VolumeIndex,
): Rejection | undefined {
  const wanted = handlesByDriver([facts], volumes)
  if (wanted.size === 0) return undefined
  const csiNode = entry.csiNode ?? volumes.csiNode(entry.name)
  if (!entry.isNew || entry.csiNode !== undefined) {
    const installed = new Set(csiNode?.spec.drivers?.map(({ name }) => name))
    for (const driver of wanted.keys())
      if (!installed.has(driver) && volumes.isRequired(driver)) return driverRejection(driver)
  }
  const present =
    entry.podsWithClaims === 0
      ? new Map<string, Set<string>>()
      : handlesByDriver(entry.pods.values(), volumes)
  for (const [driver, handles] of wanted) {
    const limit = csiNode && volumeLimit(csiNode, driver)
    if (limit === undefined) continue
    const here = new Set([...(present.get(driver) ?? []), ...volumes.attachedTo(entry.name, driver)])
    const fresh = [...handles].filter((handle) => !here.has(handle))
    if (fresh.length > 0 && here.size + fresh.length > limit) return limitRejection
  }
  return undefined
}

function driverRejection(driver: string): Rejection {
  return {
    filter: 'NodeVolumeLimits',
    reasons: [`${driver} CSI driver is not installed on the node`],
    helpedByPreemption: false,
  }
}

const limitRejection: Rejection = {
  filter: 'NodeVolumeLimits',
  reasons: ['node(s) exceed max volume count'],
  helpedByPreemption: true,
}

function handlesByDriver(pods: Iterable<PodFacts>, volumes: VolumeIndex): Map<string, Set<string>> {
  const handles = new Map<string, Set<string>>()
  for (const facts of pods) {
    for (const { name } of facts.claims) {
      const volume = volumes.csiVolume(facts.namespace, name)
      if (volume === undefined) continue
      const known = handles.get(volume.driver)
      if (known === undefined) handles.set(volume.driver, new Set([volume.handle]))
      else known.add(volume.handle)
    }
  }
  return handles
}

/** The node must reach bound volumes, and unbound claims must be able to get a volume there. */
export function volumeBindingRejection(
  plan: VolumePlan,
  entry: NodeEntry,
  volumes: VolumeIndex,
): Rejection | undefined {
  const reachable = plan.bound.every((volume) => reaches(volume, entry))
  const { found, lacksStorage: lacking } = binding(plan, entry, volumes)
  if (reachable && found && !lacking) return undefined
  const reasons = [
    ...(reachable ? [] : ['node(s) had volume node affinity conflict']),
    ...(found ? [] : ["node(s) didn't find available persistent volumes to bind"]),
    ...(lacking ? ['node(s) did not have enough free storage'] : []),
  ]
  return { filter: 'VolumeBinding', reasons, helpedByPreemption: false }
}

/**
 * Zone and region labels of volumes without node affinity. Nodes without any such label match, as their cluster has no
 * zones. Beta labels remain on volumes longer than on nodes.
 */
export function volumeZoneRejection(plan: VolumePlan, entry: NodeEntry): Rejection | undefined {
  if (!topologyLabels.some((label) => ownValue(entry.labels, label) !== undefined)) return undefined
  const conflict = plan.bound.some((volume) =>
    topologyLabels.some((label) => {
      const zones = ownValue(volume.metadata.labels, label)
      if (zones === undefined) return false
      const zone = ownValue(entry.labels, label) ?? ownValue(entry.labels, normalizedLabel(label))
      return zone === undefined || !zones.split('__').includes(zone)
    }),
  )
  return conflict ? zoneRejection : undefined
}

const zoneRejection: Rejection = {
  filter: 'VolumeZone',
  reasons: ['node(s) had no available volume zone'],
  helpedByPreemption: false,
}

function reaches(volume: PersistentVolume, entry: NodeEntry): boolean {
  const terms = volume.spec.nodeAffinity?.required?.nodeSelectorTerms
  return terms === undefined || terms.some((term) => meetsNodeSelectorTerm(term, entry.name, entry.labels))
}

/**
 * The existing volumes that the pod's unbound claims get on the node, by the name of the claim; undefined if one of
 * the claims can get none.
 */
export function volumesFor(
  plan: VolumePlan,
  entry: NodeEntry,
  volumes: VolumeIndex,
): ReadonlyMap<string, PersistentVolume> | undefined {
  const { existing, found } = binding(plan, entry, volumes)
  return found ? existing : undefined
}

interface Binding {
  /** Existing volumes by the name of the claim. */
  readonly existing: ReadonlyMap<string, PersistentVolume>
  /** Whether every unbound claim can get a volume on the node. */
  readonly found: boolean
  /** Whether only storage for a new volume is lacking. */
  readonly lacksStorage: boolean
}

function binding(plan: VolumePlan, entry: NodeEntry, volumes: VolumeIndex): Binding {
  const used = new Set<string>()
  const chosen = new Map<string, PersistentVolume>()
  let lacksStorage = false
  const found = plan.waiting.every(({ claim, storageClass }) => {
    const selected = selectedNode(claim)
    // A claim with a selected node waits for its provisioner, whatever volumes exist.
    const isSelected = selected !== undefined && selected !== ''
    if (isSelected && selected !== entry.name) return false
    const existing = isSelected ? undefined : smallestFree(claim, entry, volumes, used)
    if (existing !== undefined) {
      used.add(existing.metadata.name)
      chosen.set(claim.metadata.name, existing)
      return true
    }
    if (!isProvisionable(storageClass, entry)) return false
    lacksStorage ||= !hasStorage(claim, storageClass, entry, volumes)
    return true
  })
  return { existing: chosen, found, lacksStorage: found && lacksStorage }
}

/** Claims are compared with free storage one by one, as in kube-scheduler. */
function hasStorage(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  entry: NodeEntry,
  volumes: VolumeIndex,
): boolean {
  const request = claim.spec.resources?.requests?.['storage']
  const capacities = volumes.capacitiesOf(storageClass)
  if (request === undefined || capacities === undefined) return true
  const bytes = parseResource('storage', request)
  const known = entry.isNew ? capacities.filter(isOfZones) : capacities
  // A new node brings its own storage, unless the class has storage of zones.
  if (entry.isNew && known.length === 0) return true
  return known.some(
    (capacity) =>
      (largestVolume(capacity) ?? -1) >= bytes && matchesSelector(capacity.nodeTopology, entry.labels),
  )
}

/** Whether nodes of a zone or region share the storage. */
function isOfZones({ nodeTopology }: CsiStorageCapacity): boolean {
  const { matchLabels = {}, matchExpressions = [] } = nodeTopology ?? {}
  const keys = [...Object.keys(matchLabels), ...matchExpressions.map(({ key }) => key)]
  return keys.length > 0 && keys.every((key) => topologyLabels.includes(key))
}

/** The smallest unclaimed volume that matches a claim on this node. */
function smallestFree(
  claim: PersistentVolumeClaim,
  entry: NodeEntry,
  volumes: VolumeIndex,
  used: ReadonlySet<string>,
): PersistentVolume | undefined {
  const size = parseResource('storage', claim.spec.resources?.requests?.['storage'] ?? '0')
  let best: PersistentVolume | undefined
  let bestSize = Number.POSITIVE_INFINITY
  for (const volume of volumes.volumes()) {
    const capacity = parseResource('storage', volume.spec.capacity?.['storage'] ?? '0')
    const isLarger = capacity >= bestSize && volume.spec.claimRef === undefined
    if (capacity < size || isLarger || used.has(volume.metadata.name)) continue
    if (!suits(volume, claim)) continue
    const isReachable = reaches(volume, entry)
    // A volume that is reserved for the claim is the only one that it gets.
    if (volume.spec.claimRef !== undefined) return isReachable ? volume : undefined
    if (!isReachable) continue
    best = volume
    bestSize = capacity
  }
  return best
}

function suits(volume: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const { spec, metadata, status } = volume
  return (
    isFreeFor(volume, claim) &&
    metadata.deletionTimestamp === undefined &&
    (status?.phase ?? 'Available') === 'Available' &&
    (spec.volumeMode ?? 'Filesystem') === (claim.spec.volumeMode ?? 'Filesystem') &&
    (claim.spec.selector === undefined || labelMatcher(claim.spec.selector).matches(metadata.labels ?? {})) &&
    (storageClassNameOf(volume) ?? '') === (storageClassNameOf(claim) ?? '') &&
    (claim.spec.accessModes ?? []).every((mode) => spec.accessModes?.includes(mode))
  )
}

/** A reservation without a UID was made before the claim. */
function isFreeFor({ spec: { claimRef } }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  if (claimRef === undefined) return true
  if (claimRef.name !== metadata.name || claimRef.namespace !== metadata.namespace) return false
  return claimRef.uid === undefined || claimRef.uid === '' || claimRef.uid === metadata.uid
}

function isProvisionable(storageClass: StorageClass, entry: NodeEntry): boolean {
  if (storageClass.provisioner === noProvisioner) return false
  const terms = storageClass.allowedTopologies ?? []
  if (terms.length === 0) return true
  return terms.some((term) =>
    (term.matchLabelExpressions ?? []).every(({ key, values }) =>
      values.includes(ownValue(entry.labels, key) ?? ''),
    ),
  )
}
