/** The requirements of a pod's volumes on its node (scheduling.md 8). */
import {
  labels,
  type Node,
  type NodeSelectorRequirement,
  normalizedLabel,
  ownValue,
  parseResource,
  type PersistentVolume,
  type PersistentVolumeClaim,
  type Pod,
  type StorageClass,
  storageClassNameOf,
  type Volume,
} from '@tenon/api'
import { intersection, intersects, oneOf, type ValueSet, valueSet } from '../requirements/requirement.ts'
import { compatible, labelRequirements, requirementsOf } from '../requirements/requirements.ts'
import type { PodVolumes, VolumeUse } from '../input/input.ts'
import { FreeVolumes, hasNoProvisioner } from './free-volumes.ts'
import { canonicalKey, type ClassCapacity, type EligibilityPolicy, type VolumeLookups } from './lookups.ts'
import { nodeSelectorTerms } from './input-shapes.ts'
import type { VolumeProblem, VolumeSubject } from './problems.ts'
import { misfits } from './shape-check.ts'

type Alternative = readonly NodeSelectorRequirement[]

const ebsDriver = 'ebs.csi.aws.com'
const selectedNode = 'volume.kubernetes.io/selected-node'
/**
 * Labels that kube-scheduler (VolumeZone) compares between volumes and nodes, in addition to node affinity.
 */
const zoneLabels: readonly string[] = [
  labels.zone,
  labels.region,
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
]
/** CSI drivers that replaced in-tree provisioners. */
const migratedProvisioners: ReadonlyMap<string, string> = new Map(
  Object.entries({
    'kubernetes.io/aws-ebs': ebsDriver,
    'kubernetes.io/gce-pd': 'pd.csi.storage.gke.io',
    'kubernetes.io/cinder': 'cinder.csi.openstack.org',
    'kubernetes.io/azure-disk': 'disk.csi.azure.com',
    'kubernetes.io/azure-file': 'file.csi.azure.com',
    'kubernetes.io/vsphere-volume': 'csi.vsphere.vmware.com',
    'kubernetes.io/portworx-volume': 'pxd.portworx.com',
  }),
)
/** The maximum number of combinations for one pod, far more than real pods have. */
const maxAlternatives = 1000

/** A volume of a pod with a claim. */
export interface ClaimedVolume {
  readonly volume: string
  readonly claimName: string
  /** Kubernetes creates the claim for the pod. */
  readonly ephemeral: boolean
}

/** Volumes of a pod that have a claim, in order. */
export function claimedVolumes(pod: Pod): readonly ClaimedVolume[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const claimName = claimNameOf(pod, volume)
    const ephemeral = (volume.persistentVolumeClaim ?? undefined) === undefined
    return claimName === undefined ? [] : [{ volume: volume.name, claimName, ephemeral }]
  })
}

/** The problem of a volume without its claim. */
export function missingClaim({ ephemeral }: ClaimedVolume): 'claimMissing' | 'ephemeralClaimMissing' {
  return ephemeral ? 'ephemeralClaimMissing' : 'claimMissing'
}

function claimNameOf(pod: Pod, volume: Volume): string | undefined {
  if ((volume.persistentVolumeClaim ?? undefined) !== undefined)
    return volume.persistentVolumeClaim?.claimName
  return (volume.ephemeral ?? undefined) === undefined ? undefined : `${pod.metadata.name}-${volume.name}`
}

/** The PersistentVolume that a claim is bound to, or reserved by. */
export function boundVolumeOf(claim: PersistentVolumeClaim): string | undefined {
  const name = claim.spec.volumeName ?? ''
  return name === '' ? undefined : name
}

/** The CSI driver of a PersistentVolume; undefined if no driver attaches it. */
function driverOfVolume(volume: PersistentVolume): string | undefined {
  if ((volume.spec.csi ?? undefined) !== undefined) return volume.spec.csi?.driver
  return (volume.spec.awsElasticBlockStore ?? undefined) === undefined ? undefined : ebsDriver
}

/** The CSI driver that will provision volumes of a StorageClass. */
function driverOfClass(storageClass: StorageClass): string {
  return migratedProvisioners.get(storageClass.provisioner) ?? storageClass.provisioner
}

/** The CSI driver that attaches a claim's volume; undefined if there is none or it is unknown. */
export function driverOf(claim: PersistentVolumeClaim, lookups: VolumeLookups): string | undefined {
  const bound = boundVolumeOf(claim)
  if (bound !== undefined) {
    const volume = lookups.volume(bound)
    return volume === undefined ? undefined : driverOfVolume(volume)
  }
  const storageClass = lookups.storageClass(storageClassNameOf(claim) ?? '')
  return storageClass === undefined ? undefined : driverOfClass(storageClass)
}

/**
 * Claims of a running pod that count towards attach limits, by driver (scheduling.md 8.1). Claims that cannot
 * be looked up are left out.
 */
export function attachedClaims(pod: Pod, lookups: VolumeLookups): VolumeUse {
  const namespace = pod.metadata.namespace ?? ''
  const use = new Map<string, Set<string>>()
  for (const { claimName } of claimedVolumes(pod)) {
    const claim = lookups.claim(namespace, claimName)
    const driver = claim === undefined ? undefined : driverOf(claim, lookups)
    if (driver === undefined) continue
    const known = use.get(driver) ?? new Set()
    use.set(driver, known.add(`${namespace}/${claimName}`))
  }
  return Object.fromEntries([...use].map(([driver, names]) => [driver, [...names]]))
}

/**
 * Whether `use` and `more` together stay within the attach limits; drivers that are not in `limits` have no
 * limit.
 */
export function withinVolumeLimits(
  limits: Readonly<Record<string, number>>,
  use: VolumeUse,
  more: VolumeUse,
): boolean {
  return Object.entries(limits).every(
    ([driver, limit]) =>
      new Set([...(ownValue(use, driver) ?? []), ...(ownValue(more, driver) ?? [])]).size <= limit,
  )
}

/** One way to satisfy the claims of a pod that were read so far. */
interface Option {
  readonly terms: Alternative
  /** PersistentVolumes that unbound claims would be bound to. */
  readonly takes: readonly Taking[]
}

interface Taking {
  readonly volume: string
  readonly claim: PersistentVolumeClaim
}

/** The ways to satisfy a claim, or why they are unknown. */
type Resolution = { readonly options: readonly Option[] } | { readonly problem: VolumeProblem }

const noKeys: ReadonlySet<string> = new Set()
const anywhere: Option = { terms: [], takes: [] }

/** Whether the claim is ReadWriteOncePod. */
export function isExclusive({ spec }: PersistentVolumeClaim): boolean {
  return spec.accessModes?.includes('ReadWriteOncePod') === true
}

/**
 * Registers the unbound claims of a pod that need an existing PersistentVolume. Call it for every pod of a
 * decision before the first one is resolved.
 */
export function noteFreeVolumes(pod: Pod, lookups: VolumeLookups, free: FreeVolumes): void {
  for (const { claimName } of claimedVolumes(pod)) {
    const claim = lookups.claim(pod.metadata.namespace ?? '', claimName)
    if (claim === undefined || boundVolumeOf(claim) !== undefined) continue
    const storageClass = lookups.storageClass(storageClassNameOf(claim) ?? '')
    if (storageClass !== undefined && hasNoProvisioner(storageClass)) free.note(claim)
  }
}

/**
 * The requirements of the pod's volumes on its node (scheduling.md 8.2).
 * @param free PersistentVolumes that unbound claims can get; those that this pod gets are removed from it.
 * @returns the first problem if a claim, PersistentVolume or StorageClass cannot be looked up or read.
 */
export function resolveVolumes(
  pod: Pod,
  lookups: VolumeLookups,
  policy: EligibilityPolicy,
  free: FreeVolumes = new FreeVolumes(lookups),
): PodVolumes | VolumeProblem {
  const namespace = pod.metadata.namespace ?? ''
  let combined: readonly Option[] = [anywhere]
  const exclusive: string[] = []
  let isContested = false
  for (const claimed of claimedVolumes(pod)) {
    const { volume, claimName } = claimed
    const subject = { volume, claim: `${namespace}/${claimName}` }
    const claim = lookups.claim(namespace, claimName)
    if (claim === undefined) return { kind: missingClaim(claimed), ...subject }
    const resolved = resolveClaim(claim, subject, lookups, free)
    if ('problem' in resolved) return resolved.problem
    const options = resolved.options.map((option) => withCanonicalKeys(option, policy))
    combined = product(combined, options)
    if (combined.length === 0) return noVolumeFor(claim, subject)
    if (isExclusive(claim)) exclusive.push(subject.claim)
    isContested ||= options.some(({ takes }) => takes.length > 0) && free.isContested(claim)
  }
  // If other claims need the same volumes, each pod is placed with volumes of its own.
  if (isContested) {
    combined = combined.slice(0, 1)
    for (const { volume, claim } of combined[0]?.takes ?? []) free.keep(volume, claim)
  }
  return {
    alternatives: combined.every(({ terms }) => terms.length === 0) ? [] : combined.map(({ terms }) => terms),
    claims: attachedClaims(pod, lookups),
    ...(exclusive.length > 0 && { exclusive }),
  }
}

/**
 * Whether the node can reach the pod's volumes as they are now.
 * @param nodeLabels labels of the node, by canonical key.
 */
export function volumesAdmit(
  { alternatives }: Pick<PodVolumes, 'alternatives'>,
  nodeLabels: Readonly<Record<string, string>>,
): boolean {
  const has = labelRequirements(nodeLabels)
  return alternatives.length === 0 || alternatives.some((term) => compatible(has, sets(term), noKeys))
}

function withCanonicalKeys(option: Option, policy: EligibilityPolicy): Option {
  if (option.terms.length === 0) return option
  const terms = option.terms.map((term) => ({ ...term, key: canonicalKey(term.key, policy) }))
  return { ...option, terms }
}

function resolveClaim(
  claim: PersistentVolumeClaim,
  subject: VolumeSubject,
  lookups: VolumeLookups,
  free: FreeVolumes,
): Resolution {
  const bound = boundVolumeOf(claim)
  if (bound !== undefined) {
    const volume = lookups.volume(bound)
    if (volume === undefined)
      return { problem: { kind: 'volumeMissing', persistentVolume: bound, ...subject } }
    const terms = boundTerms(volume)
    return terms === undefined ? unreadable(volume, subject) : { options: optionsOf(terms) }
  }
  const name = storageClassNameOf(claim) ?? ''
  if (name === '') return { options: [anywhere] }
  const storageClass = lookups.storageClass(name)
  if (storageClass === undefined)
    return { problem: { kind: 'storageClassMissing', storageClass: name, ...subject } }
  const chosen = lookups.node(claim.metadata.annotations?.[selectedNode] ?? '')
  if (chosen !== undefined) return { options: optionsOf([[hostOf(chosen)]]) }
  if (!hasNoProvisioner(storageClass)) return provisioned(claim, storageClass, subject, lookups)
  const options: Option[] = []
  for (const volume of free.volumesFor(claim)) {
    const terms = requiredTerms(volume)
    if (terms === undefined) return unreadable(volume, subject)
    const takes = [{ volume: volume.metadata.name, claim }]
    options.push(...optionsOf(terms).map((each) => ({ ...each, takes })))
  }
  return options.length === 0 ? { problem: noVolumeFor(claim, subject) } : { options }
}

/** Where a volume can be provisioned: by topologies of the class and by free storage. */
function provisioned(
  claim: PersistentVolumeClaim,
  storageClass: StorageClass,
  subject: VolumeSubject,
  lookups: VolumeLookups,
): Resolution {
  const options = optionsOf(classTerms(storageClass))
  const capacity = lookups.storageCapacity?.(storageClass)
  const request = claim.spec.resources?.requests?.['storage']
  if (capacity === undefined || request === undefined) return { options }
  const terms = termsWithRoom(parseResource('storage', request), capacity)
  if (terms.length > 0) return { options: product(options, optionsOf(terms)) }
  const { name } = storageClass.metadata
  return { problem: { kind: 'storageFull', storageClass: name, request, ...subject } }
}

/** Terms of the nodes, existing or new, for which a volume of this size can be provisioned. */
function termsWithRoom(bytes: number, { shared, local }: ClassCapacity): readonly Alternative[] {
  const terms: Alternative[] = shared.filter((each) => each.bytes >= bytes).map(({ term }) => term)
  if (local === undefined) return terms
  const namesOf = (all: ReadonlyMap<string, number>, isLargeEnough: boolean) =>
    [...all].filter(([, free]) => free >= bytes === isLargeEnough).map(([name]) => name)
  const hosts = namesOf(local.byHost, true)
  if (hosts.length > 0) terms.push([{ key: labels.hostname, operator: 'In', values: hosts }])
  const known = [...local.byHost.keys()]
  const tooSmall = namesOf(local.byType, false)
  const others: NodeSelectorRequirement[] = []
  if (known.length > 0) others.push({ key: labels.hostname, operator: 'NotIn', values: known })
  if (tooSmall.length > 0) others.push({ key: labels.instanceType, operator: 'NotIn', values: tooSmall })
  return [...terms, others]
}

function optionsOf(alternatives: readonly Alternative[]): readonly Option[] {
  return alternatives.length === 0 ? [anywhere] : alternatives.map((terms) => ({ terms, takes: [] }))
}

function noVolumeFor(claim: PersistentVolumeClaim, subject: VolumeSubject): VolumeProblem {
  return { kind: 'noVolumeToBind', storageClass: storageClassNameOf(claim) ?? '', ...subject }
}

function unreadable(volume: PersistentVolume, subject: VolumeSubject): Resolution {
  return { problem: { kind: 'volumeUnreadable', persistentVolume: volume.metadata.name, ...subject } }
}

/** kube-scheduler has selected this node for a claim that is not bound yet, so the pod stays there. */
function hostOf(node: Node): NodeSelectorRequirement {
  const host = node.metadata.labels?.[labels.hostname] ?? node.metadata.name
  return { key: labels.hostname, operator: 'In', values: [host] }
}

/**
 * Host names are left out for node-local volumes: the pod may move to another node, as its data is not kept.
 */
function boundTerms(volume: PersistentVolume): readonly Alternative[] | undefined {
  const isLocal =
    (volume.spec.local ?? undefined) !== undefined || (volume.spec.hostPath ?? undefined) !== undefined
  const terms = requiredTerms(volume)
  return isLocal ? terms?.map((term) => term.filter(({ key }) => key !== labels.hostname)) : terms
}

/** The alternatives of a volume's node affinity and zone labels; undefined when they cannot be read. */
function requiredTerms(volume: PersistentVolume): readonly Alternative[] | undefined {
  const terms = volume.spec.nodeAffinity?.required?.nodeSelectorTerms ?? []
  if (misfits(terms, nodeSelectorTerms).length > 0) return undefined
  const stated = terms.map((term) => term.matchExpressions ?? []).filter((term) => term.length > 0)
  const zones = zoneLabelTerms(volume)
  if (zones.length === 0) return stated
  if (stated.length === 0) return [zones, withoutZones]
  const unlabelled = stated.filter((term) => canBothHold(term, withoutZones))
  return [
    ...stated.map((term) => [...term, ...zones]),
    ...unlabelled.map((term) => [...term, ...withoutZones]),
  ]
}

/** kube-scheduler does not compare zones with a node that has no zone label at all. */
const withoutZones: Alternative = [...new Set(zoneLabels.map(normalizedLabel))].map((key) => ({
  key,
  operator: 'DoesNotExist',
}))

/** Zone and region labels of volumes without node affinity; several values are joined by `__`. */
function zoneLabelTerms({ metadata }: PersistentVolume): Alternative {
  return zoneLabels.flatMap((key): Alternative => {
    const value = ownValue(metadata.labels, key)
    return value === undefined
      ? []
      : [{ key: normalizedLabel(key), operator: 'In', values: value.split('__') }]
  })
}

function classTerms(storageClass: StorageClass): readonly Alternative[] {
  return (storageClass.allowedTopologies ?? [])
    .map((term) =>
      (term.matchLabelExpressions ?? []).map(
        ({ key, values }): NodeSelectorRequirement => ({ key, operator: 'In', values: values ?? [] }),
      ),
    )
    .filter((term) => term.length > 0)
}

/** Compatible combinations; all of them when none is compatible. No volume is used for two claims. */
function product(before: readonly Option[], next: readonly Option[]): readonly Option[] {
  if (isAnywhere(before)) return next
  if (isAnywhere(next)) return before
  const pairs: Option[] = []
  const impossible: Option[] = []
  for (const a of before)
    for (const b of next) {
      if (!canBothTake(a, b)) continue
      const found = canBothHold(a.terms, b.terms) ? pairs : impossible
      if (found.length < maxAlternatives)
        found.push({ terms: both(a.terms, b.terms), takes: [...a.takes, ...b.takes] })
    }
  return distinct(pairs.length > 0 ? pairs : impossible)
}

const isAnywhere = (options: readonly Option[]): boolean => options.length === 1 && options[0] === anywhere

/** Two volumes of a pod may use the same claim. */
function canBothTake(a: Option, b: Option): boolean {
  return a.takes.every(({ volume, claim }) =>
    b.takes.every((other) => (other.volume === volume) === (other.claim === claim)),
  )
}

function sets(term: Alternative): ReadonlyMap<string, ValueSet> {
  return requirementsOf(term.map((expression) => valueSet(expression)))
}

function canBothHold(a: Alternative, b: Alternative): boolean {
  const wanted = sets(b)
  for (const [key, set] of sets(a)) {
    const other = wanted.get(key)
    if (other !== undefined && !intersects(set, other)) return false
  }
  return true
}

/**
 * Both terms as one. `In` expressions of equal keys are merged, so that terms do not grow with the number of
 * volumes.
 */
function both(a: Alternative, b: Alternative): Alternative {
  const merged = [...a]
  for (const expression of b) {
    const index = merged.findIndex((each) => each.key === expression.key && each.operator === 'In')
    const same = merged[index]
    if (same === undefined || expression.operator !== 'In') merged.push(expression)
    else merged[index] = { ...same, values: commonValues(same, expression) }
  }
  return merged
}

function commonValues(a: NodeSelectorRequirement, b: NodeSelectorRequirement): readonly string[] {
  const set = (one: NodeSelectorRequirement) => oneOf(one.key, ...(one.values ?? []))
  return [...intersection(set(a), set(b)).values].toSorted()
}

function distinct(options: readonly Option[]): readonly Option[] {
  const keyOf = ({ terms, takes }: Option) => JSON.stringify([terms, takes.map(({ volume }) => volume)])
  return [...new Map(options.map((option) => [keyOf(option), option])).values()]
}
