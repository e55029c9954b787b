/** Why a pending pod is ineligible, as data and as text (scheduling.md 2.1). */
import { labels } from '@tenon/api'
import type { ShapeProblem } from './shape-check.ts'

/** A volume of a pod and its claim. */
export interface VolumeSubject {
  /** Name of the volume in the pod. */
  readonly volume: string
  /** `namespace/name` of the PersistentVolumeClaim. */
  readonly claim: string
}

/** A problem of the pod's node selector or affinity; `field` is a path in the pod. */
export type SelectionProblem =
  | { readonly kind: 'matchFields'; readonly field: string }
  | { readonly kind: 'invalidKey'; readonly field: string; readonly key: string }
  | { readonly kind: 'restrictedLabel'; readonly field: string; readonly key: string }
  | { readonly kind: 'invalidValue'; readonly field: string; readonly key: string; readonly value: string }
  | { readonly kind: 'noValues'; readonly field: string; readonly key: string }
  | { readonly kind: 'notAnInteger'; readonly field: string; readonly key: string; readonly operator: string }
  | {
      readonly kind: 'unknownValues'
      readonly field: string
      readonly key: string
      readonly values: readonly string[]
      readonly known: readonly string[]
    }

/** A problem of one of the pod's volumes. */
export type VolumeProblem = VolumeSubject &
  (
    | {
        readonly kind:
          | 'claimMissing'
          | 'ephemeralClaimMissing'
          | 'claimTerminating'
          | 'claimLost'
          | 'bindingIncomplete'
      }
    | {
        readonly kind: 'volumeMissing' | 'volumeTerminating' | 'volumeUnreadable'
        readonly persistentVolume: string
      }
    | { readonly kind: 'noStorageClass' }
    | { readonly kind: 'storageClassMissing' | 'immediateBinding'; readonly storageClass: string }
    | { readonly kind: 'noVolumeToBind'; readonly storageClass: string }
    | { readonly kind: 'storageFull'; readonly storageClass: string; readonly request: string }
    /** The claim is ReadWriteOncePod, and `pod` (`namespace/name`) uses it. */
    | { readonly kind: 'claimInUse'; readonly pod: string }
    | { readonly kind: 'unsupportedTopologyKey'; readonly storageClass: string; readonly key: string }
    | { readonly kind: 'unsupportedProvisioner'; readonly driver: string }
  )

export type PodProblem =
  | { readonly kind: 'optedOut' }
  | ({ readonly kind: 'misshapen' } & ShapeProblem)
  | SelectionProblem
  | VolumeProblem

/** Why a pod is ineligible; never empty. */
export interface PodProblems {
  readonly problems: readonly PodProblem[]
  /** True if the pod excludes managed nodes itself, so that no event is recorded. */
  readonly silent: boolean
}

/** One sentence that names every problem, its field and the fix. */
export function renderPodProblems({ problems }: PodProblems): string {
  return problems.map(renderPodProblem).join('; ')
}

function renderPodProblem(problem: PodProblem): string {
  if ('volume' in problem) return renderVolumeProblem(problem)
  if (problem.kind === 'optedOut')
    return 'the pod asks for a node without label karpenter.sh/nodepool, which no NodePool can give'
  if (problem.kind === 'misshapen')
    return `${problem.field === '' ? 'the pod' : problem.field} must be ${problem.expected}`
  return `${problem.field}: ${renderSelectionProblem(problem)}`
}

/** The problem and the fix, without the field. */
export function renderSelectionProblem(problem: SelectionProblem): string {
  switch (problem.kind) {
    case 'matchFields':
      return 'matchFields take metadata.name with operator In or NotIn and at least one value; choose by label in matchExpressions'
    case 'invalidKey':
      return `"${problem.key}" is not a label key; a key is [prefix/]name, the name at most 63 letters, digits, "-", "_" and "."`
    case 'restrictedLabel':
      return problem.key === labels.hostname
        ? `label ${problem.key} names one node, and no new node gets that name; remove it or use another label`
        : `label ${problem.key} cannot be chosen by a pod; remove it or use another label`
    case 'invalidValue':
      return `"${problem.value}" is not a value for label ${problem.key}; a value is at most 63 letters, digits, "-", "_" and ".", with a letter or digit at both ends`
    case 'noValues':
      return `operator In for label ${problem.key} needs at least one value`
    case 'notAnInteger':
      return `operator ${problem.operator} for label ${problem.key} needs a single integer of 0 or more`
    case 'unknownValues':
      return `label ${problem.key} never has the value ${problem.values.join(' or ')}; use ${problem.known.join(', ')}`
  }
}

/** Names the volume, its claim, the problem and the fix. */
export function renderVolumeProblem(problem: VolumeProblem): string {
  return `volume ${problem.volume}: PersistentVolumeClaim ${problem.claim} ${volumeWords(problem)}`
}

function volumeWords(problem: VolumeProblem): string {
  switch (problem.kind) {
    case 'claimMissing':
      return 'does not exist; create it'
    case 'ephemeralClaimMissing':
      return 'does not exist yet; Kubernetes makes it for the ephemeral volume unless a quota or an admission rule refuses it (see the events of the pod)'
    case 'claimTerminating':
      return 'is being deleted; create it anew once it is gone'
    case 'claimLost':
      return 'has lost its PersistentVolume (phase Lost); delete and recreate it'
    case 'bindingIncomplete':
      return 'names a PersistentVolume but is not bound to it yet (annotation pv.kubernetes.io/bind-completed is absent)'
    case 'volumeMissing':
      return `is bound to PersistentVolume ${problem.persistentVolume}, which does not exist`
    case 'volumeTerminating':
      return `is bound to PersistentVolume ${problem.persistentVolume}, which is being deleted`
    case 'volumeUnreadable':
      return `is bound to PersistentVolume ${problem.persistentVolume}, whose spec.nodeAffinity cannot be read`
    case 'noStorageClass':
      return 'is not bound and names no StorageClass; set spec.storageClassName'
    case 'storageClassMissing':
      return `names StorageClass ${problem.storageClass}, which does not exist`
    case 'immediateBinding':
      return `is not bound, and its StorageClass ${problem.storageClass} binds at once (volumeBindingMode Immediate); wait for it or use WaitForFirstConsumer`
    case 'noVolumeToBind':
      return `is not bound, its StorageClass ${problem.storageClass} provisions no volumes (kubernetes.io/no-provisioner), and no free PersistentVolume suits it; create one`
    case 'storageFull':
      return `asks for ${problem.request}, and no CSIStorageCapacity of StorageClass ${problem.storageClass} offers as much; add storage or use another class`
    case 'claimInUse':
      return `has access mode ReadWriteOncePod and is in use by pod ${problem.pod}; wait until that pod is gone, or use ReadWriteOnce`
    case 'unsupportedTopologyKey':
      return `has StorageClass ${problem.storageClass}, whose allowedTopologies use ${problem.key}; the provider's nodes do not have that label`
    case 'unsupportedProvisioner':
      return `is provisioned by ${problem.driver}, which does not work on the provider's nodes`
  }
}
