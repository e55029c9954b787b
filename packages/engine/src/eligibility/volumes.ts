/** What a pod's volumes ask of its node (scheduling.md 8). */
import type {
  NodeSelectorRequirement,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  StorageClass,
  Volume,
} from '@tenon/api'
import { labels, storageClassNameOf } from '@tenon/api'
import { intersection, intersects, oneOf, type ValueSet, valueSet } from '../requirements/requirement.ts'
import { requirementsOf } from '../requirements/requirements.ts'
import type { PodVolumes, VolumeUse } from '../snapshot/input.ts'
import { canonicalKey, type EligibilityPolicy, type VolumeLookups } from './lookups.ts'
import { nodeSelectorTerms } from './pod-shape.ts'
import type { VolumeProblem, VolumeSubject } from './problems.ts'
import { misfits } from './shape-check.ts'

type Alternative = readonly NodeSelectorRequirement[]

const ebsDriver = 'ebs.csi.aws.com'
/** CSI drivers that took over from the provisioners built into Kubernetes. */
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
/** Bound on the combinations that are tried for one pod; far beyond what volumes of real pods have. */
const maxAlternatives = 1000

/** A volume of a pod that stands for a claim. */
export interface ClaimedVolume {
  readonly volume: string
  readonly claimName: string
  /** Kubernetes makes the claim for the pod. */
  readonly ephemeral: boolean
}

/** Volumes of a pod that stand for a claim, in order. */
export function claimedVolumes(pod: Pod): readonly ClaimedVolume[] {
  return (pod.spec.volumes ?? []).flatMap((volume) => {
    const claimName = claimNameOf(pod, volume)
    const ephemeral = (volume.persistentVolumeClaim ?? undefined) === undefined
    return claimName === undefined ? [] : [{ volume: volume.name, claimName, ephemeral }]
  })
}

/** What is wrong with a volume whose claim is not there. */
export function missingClaim({ ephemeral }: ClaimedVolume): 'claimMissing' | 'ephemeralClaimMissing' {
  return ephemeral ? 'ephemeralClaimMissing' : 'claimMissing'
}

function claimNameOf(pod: Pod, volume: Volume): string | undefined {
  if ((volume.persistentVolumeClaim ?? undefined) !== undefined)
    return volume.persistentVolumeClaim?.claimName
  return (volume.ephemeral ?? undefined) === undefined ? undefined : `${pod.metadata.name}-${volume.name}`
}

/** Name of the PersistentVolume a claim is bound to, or was reserved for. */
export function boundVolumeOf(claim: PersistentVolumeClaim): string | undefined {
  const name = claim.spec.volumeName ?? ''
  return name === '' ? undefined : name
}

/** The CSI driver of a PersistentVolume; undefined when none attaches it. */
function driverOfVolume(volume: PersistentVolume): string | undefined {
  if ((volume.spec.csi ?? undefined) !== undefined) return volume.spec.csi?.driver
  return (volume.spec.awsElasticBlockStore ?? undefined) === undefined ? undefined : ebsDriver
}

/** The CSI driver that will provision volumes of a StorageClass. */
function driverOfClass(storageClass: StorageClass): string {
  return migratedProvisioners.get(storageClass.provisioner) ?? storageClass.provisioner
}

/** The CSI driver that attaches a claim's volume; undefined when it is unknown or there is none. */
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
 * Claims of a pod that count against a node's attach limits, by driver (scheduling.md 8.1). What
 * cannot be looked up is left out: of a pod that runs already, nothing better is known.
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

/** A claim's own terms, or why they cannot be known. */
type Resolution = { readonly alternatives: readonly Alternative[] } | { readonly problem: VolumeProblem }

/**
 * What the pod's volumes ask of its node (scheduling.md 8.2).
 * @returns the first volume's problem when a claim, a PersistentVolume or a StorageClass cannot be
 * looked up or read: without it nobody can say where the pod may run.
 */
export function resolveVolumes(
  pod: Pod,
  lookups: VolumeLookups,
  policy: EligibilityPolicy,
): PodVolumes | VolumeProblem {
  const namespace = pod.metadata.namespace ?? ''
  let combined: readonly Alternative[] = []
  for (const claimed of claimedVolumes(pod)) {
    const { volume, claimName } = claimed
    const subject = { volume, claim: `${namespace}/${claimName}` }
    const claim = lookups.claim(namespace, claimName)
    if (claim === undefined) return { kind: missingClaim(claimed), ...subject }
    const resolved = resolveClaim(claim, subject, lookups)
    if ('problem' in resolved) return resolved.problem
    const terms = resolved.alternatives.map((term) =>
      term.map((expression) => ({ ...expression, key: canonicalKey(expression.key, policy) })),
    )
    combined = product(combined, terms)
  }
  return { alternatives: combined, claims: attachedClaims(pod, lookups) }
}

function resolveClaim(
  claim: PersistentVolumeClaim,
  subject: VolumeSubject,
  lookups: VolumeLookups,
): Resolution {
  const bound = boundVolumeOf(claim)
  if (bound !== undefined) {
    const volume = lookups.volume(bound)
    return volume === undefined
      ? { problem: { kind: 'volumeMissing', persistentVolume: bound, ...subject } }
      : volumeTerms(volume, subject)
  }
  const name = storageClassNameOf(claim) ?? ''
  if (name === '') return { alternatives: [] }
  const storageClass = lookups.storageClass(name)
  return storageClass === undefined
    ? { problem: { kind: 'storageClassMissing', storageClass: name, ...subject } }
    : { alternatives: classTerms(storageClass) }
}

/** Each required term is an alternative. A node-local path moves with the pod: its host name does not bind. */
function volumeTerms(volume: PersistentVolume, subject: VolumeSubject): Resolution {
  const terms = volume.spec.nodeAffinity?.required?.nodeSelectorTerms ?? []
  if (misfits(terms, nodeSelectorTerms).length > 0) {
    return { problem: { kind: 'volumeUnreadable', persistentVolume: volume.metadata.name, ...subject } }
  }
  const isLocal =
    (volume.spec.local ?? undefined) !== undefined || (volume.spec.hostPath ?? undefined) !== undefined
  const stated = terms.map((term) => term.matchExpressions ?? []).filter((term) => term.length > 0)
  return {
    alternatives: isLocal ? stated.map((term) => term.filter(({ key }) => key !== labels.hostname)) : stated,
  }
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

/** Combinations of which both halves can hold at once; all of them when none can. */
function product(before: readonly Alternative[], next: readonly Alternative[]): readonly Alternative[] {
  if (before.length === 0) return next
  if (next.length === 0) return before
  const pairs = before.flatMap((a) => next.map((b) => [a, b] as const))
  const possible = pairs.filter(([a, b]) => canBothHold(a, b))
  const kept = possible.length > 0 ? possible : pairs
  return distinct(kept.map(([a, b]) => both(a, b))).slice(0, maxAlternatives)
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

/** Both terms as one; equal keys that list values are merged, so that terms do not grow with volumes. */
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

function distinct(terms: readonly Alternative[]): readonly Alternative[] {
  return [...new Map(terms.map((term) => [JSON.stringify(term), term])).values()]
}
