/** Whether a pending pod is eligible (scheduling.md 2.1). */
import { labels, type Pod, type PodSpec, storageClassNameOf } from '@tenon/api'
import { operatorOf } from '../requirements/requirement.ts'
import { requiredAlternatives } from '../requirements/requirements.ts'
import { type EligibilityPolicy, type VolumeLookups } from './lookups.ts'
import { selectionProblems } from './node-selection.ts'
import { invalidFields } from './input-shapes.ts'
import type { PodProblem, PodProblems, VolumeProblem } from './problems.ts'
import {
  boundVolumeOf,
  type ClaimedVolume,
  claimedVolumes,
  driverOf,
  isExclusive,
  missingClaim,
} from './volumes.ts'

const bindCompleted = 'pv.kubernetes.io/bind-completed'

/**
 * Why a pod is ineligible, or undefined. Never throws: for a pod with invalid fields these are the only problem, and
 * nothing else is checked.
 * @param isWellFormed set when {@link shapeProblems} has found nothing before.
 */
export function validatePod(
  pod: Pod,
  lookups: VolumeLookups,
  policy: EligibilityPolicy,
  isWellFormed = false,
): PodProblems | undefined {
  const misshapen = isWellFormed ? undefined : shapeProblems(pod)
  if (misshapen !== undefined) return misshapen
  const silent = isOptedOut(pod)
  const problems: readonly PodProblem[] = [
    ...(silent ? [{ kind: 'optedOut' } as const] : []),
    ...selectionProblems(pod.spec, policy),
    ...volumeProblems(pod, lookups, policy),
  ]
  return problems.length === 0 ? undefined : { problems, silent }
}

/** Invalid fields; the only check for pods of terminating nodes, which must move anyway. */
export function shapeProblems(pod: Pod): PodProblems | undefined {
  const problems = invalidFields(pod)
  if (problems.length === 0) return undefined
  return { problems: problems.map((problem) => ({ kind: 'misshapen', ...problem })), silent: false }
}

/** Whether the pod excludes every NodePool. Preferences and single terms exclude nothing. */
function isOptedOut({ spec }: Pod): boolean {
  if (!mentionsPool(spec)) return false
  return requiredAlternatives(spec).every((wanted) => {
    const pool = wanted.get(labels.nodePool)
    return pool !== undefined && operatorOf(pool) === 'DoesNotExist'
  })
}

/** A fast check, as most pods do not mention a NodePool. */
function mentionsPool({ nodeSelector, affinity }: PodSpec): boolean {
  if (nodeSelector?.[labels.nodePool] !== undefined) return true
  const required =
    affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  return required.some((term) => (term.matchExpressions ?? []).some(({ key }) => key === labels.nodePool))
}

function volumeProblems(
  pod: Pod,
  lookups: VolumeLookups,
  policy: EligibilityPolicy,
): readonly VolumeProblem[] {
  const namespace = pod.metadata.namespace ?? ''
  return claimedVolumes(pod).flatMap((claimed) =>
    claimProblems(pod, claimed, lookups, policy).map((problem) => ({
      volume: claimed.volume,
      claim: `${namespace}/${claimed.claimName}`,
      ...problem,
    })),
  )
}

type WithoutSubject<T> = T extends unknown ? Omit<T, 'volume' | 'claim'> : never
type ClaimProblem = WithoutSubject<VolumeProblem>

function claimProblems(
  pod: Pod,
  claimed: ClaimedVolume,
  lookups: VolumeLookups,
  policy: EligibilityPolicy,
): readonly ClaimProblem[] {
  const { namespace = '', uid } = pod.metadata
  const claim = lookups.claim(namespace, claimed.claimName)
  if (claim === undefined) return [{ kind: missingClaim(claimed) }]
  const problems: ClaimProblem[] = []
  if (claim.metadata.deletionTimestamp !== undefined) problems.push({ kind: 'claimTerminating' })
  if (claim.status?.phase === 'Lost') problems.push({ kind: 'claimLost' })
  const user = isExclusive(claim)
    ? lookups.podsUsing(namespace, claimed.claimName).find((each) => each.metadata.uid !== uid)
    : undefined
  if (user !== undefined) problems.push({ kind: 'claimInUse', pod: `${namespace}/${user.metadata.name}` })
  const bound = boundVolumeOf(claim)
  if (bound === undefined) problems.push(...classProblems(storageClassNameOf(claim), lookups, policy))
  else {
    const volume = lookups.volume(bound)
    if (volume === undefined) problems.push({ kind: 'volumeMissing', persistentVolume: bound })
    else if (volume.metadata.deletionTimestamp !== undefined)
      problems.push({ kind: 'volumeTerminating', persistentVolume: bound })
    if (claim.metadata.annotations?.[bindCompleted] === undefined)
      problems.push({ kind: 'bindingIncomplete' })
  }
  const driver = driverOf(claim, lookups)
  if (driver !== undefined && policy.unsupportedProvisioners?.has(driver) === true)
    problems.push({ kind: 'unsupportedProvisioner', driver })
  return problems
}

/** Problems of the StorageClass of an unbound claim; a bound claim no longer needs its class. */
function classProblems(
  name: string | undefined,
  lookups: VolumeLookups,
  policy: EligibilityPolicy,
): readonly ClaimProblem[] {
  if (name === undefined || name === '') return [{ kind: 'noStorageClass' }]
  const storageClass = lookups.storageClass(name)
  if (storageClass === undefined) return [{ kind: 'storageClassMissing', storageClass: name }]
  const problems: ClaimProblem[] = []
  if (storageClass.volumeBindingMode === 'Immediate')
    problems.push({ kind: 'immediateBinding', storageClass: name })
  const keys = (storageClass.allowedTopologies ?? []).flatMap((term) =>
    (term.matchLabelExpressions ?? []).map(({ key }) => key),
  )
  for (const key of new Set(keys)) {
    if (policy.unsupportedTopologyKeys?.has(key) === true)
      problems.push({ kind: 'unsupportedTopologyKey', storageClass: name, key })
  }
  return problems
}
