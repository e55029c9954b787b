/** Pods that a rollout of their Deployment replaces before their node goes, so that nobody evicts them (wanted.md 3). */
import {
  annotations,
  type Condition,
  controllerOf,
  counted,
  type Deployment,
  matchesSelector,
  ownValue,
  type PersistentVolumeClaim,
  type Pod,
  type PodDisruptionBudget,
} from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { Listeners } from '@tenon/runtime'
import type { Settings } from '../../settings.ts'
import { isUnreadable } from '../readable.ts'
import { isCurrent } from './budget-outlook.ts'
import { isActive, isPodReady, keyOf } from './pods.ts'

export const surgeAnnotation = 'tenon.sh/surge-on-drain'
/** In the pod template, as `kubectl rollout restart` writes it; pods have the value of the template they were made of. */
export const restartedAtAnnotation = 'kubectl.kubernetes.io/restartedAt'
/** UIDs of the Nodes for whose drains the Deployment was restarted, the latest last. */
export const surgedForAnnotation = 'tenon.sh/surged-for'

const shownCharacters = 60

/** What a drain does with a pod of a Deployment that surges. */
export type SurgeStep =
  /** The Deployment is still to be restarted for this drain. */
  | 'restart'
  /** Its rollout replaces the pod. */
  | 'wait'
  /** The rollout is complete, has failed, or replaces the pod no more. */
  | 'evict'

interface Sources {
  readonly deployments?: Pick<Cache<Deployment>, 'get' | 'onChange'>
  readonly persistentVolumeClaims: Pick<Cache<PersistentVolumeClaim>, 'get'>
}

export class SurgingPods {
  readonly #deployments: Sources['deployments']
  readonly #volumeClaims: Sources['persistentVolumeClaims']
  readonly #scope: Settings['surgeOnDrain']
  /** Generations of Deployments that the API server did not let be restarted, by UID. */
  readonly #refused = new Map<string, number | undefined>()
  /** Whether pods of a Deployment surge may have changed. */
  readonly changes: Listeners<undefined> = new Listeners()

  constructor({ deployments, persistentVolumeClaims }: Sources, scope: Settings['surgeOnDrain']) {
    this.#deployments = deployments
    this.#volumeClaims = persistentVolumeClaims
    this.#scope = scope
    deployments?.onChange((change) => {
      if (change.kind === 'deleted') this.#refused.delete(change.object.metadata.uid ?? '')
      const isSame = change.kind === 'updated' && this.#shapeOf(change.old) === this.#shapeOf(change.object)
      if (!isSame) this.changes.notify(undefined)
    })
  }

  /** Without it, nothing is known of any Deployment. */
  get isOn(): boolean {
    return this.#deployments !== undefined
  }

  /** What decides whether the pods of a Deployment surge, as far as that is not in PDBs. */
  #shapeOf(deployment: Deployment): string {
    if (isUnreadable(deployment) || !this.isAsked(deployment)) return ''
    if (this.isRefused(deployment)) return 'is refused'
    if (hasFailed(deployment)) return 'has failed'
    return whyNoSurge(deployment, []) ?? `may lack ${missingIn(deployment)}`
  }

  /** The Deployment of a pod, if its pods are to surge; whether they can is for {@link whyNoSurge} to say. */
  deploymentOf(pod: Pod): Deployment | undefined {
    if (this.#deployments === undefined) return undefined
    const owner = controllerOf(pod)
    const hash = ownValue(pod.metadata.labels, 'pod-template-hash') ?? ''
    // ReplicaSets have the name of their Deployment and this hash; before a restart that is looked up.
    if (owner?.kind !== 'ReplicaSet' || hash === '' || !owner.name.endsWith(`-${hash}`)) return undefined
    const name = owner.name.slice(0, -hash.length - 1)
    const deployment = this.#deployments.get({ namespace: pod.metadata.namespace ?? '', name })
    if (deployment === undefined || isUnreadable(deployment) || !this.isAsked(deployment)) return undefined
    return matchesSelector(deployment.spec.selector, pod.metadata.labels) ? deployment : undefined
  }

  isAsked({ metadata }: Pick<Deployment, 'metadata'>): boolean {
    const value = ownValue(metadata.annotations, surgeAnnotation)
    if (value === 'true') return true
    return value !== 'false' && this.#scope === 'all'
  }

  /** Whether a drain would have the pod replaced by a rollout, so that its PDBs do not hold it. */
  surges(pod: Pod, covering: readonly PodDisruptionBudget[]): boolean {
    const deployment = this.deploymentOf(pod)
    return (
      deployment !== undefined &&
      isActive(pod) &&
      isPodReady(pod) &&
      // Such a rollout would not end, and the node would be drained for nothing, or past its PDBs.
      !hasFailed(deployment) &&
      !this.isRefused(deployment) &&
      !this.sharesVolume(pod) &&
      whyNoSurge(deployment, covering) === undefined
    )
  }

  /** Notes that the API server does not let a Deployment be restarted: PDBs of its pods count from now on. */
  refuse({ metadata }: Deployment): void {
    this.#refused.set(metadata.uid ?? '', metadata.generation)
    this.changes.notify(undefined)
  }

  /** Whether a restart was refused since the Deployment was last changed; not known after a restart of the controller. */
  isRefused({ metadata: { generation, uid = '' } }: Deployment): boolean {
    return this.#refused.has(uid) && this.#refused.get(uid) === generation
  }

  /** Whether the successor of a pod needs a volume of it that only one node can attach, or one that is not known. */
  sharesVolume(pod: Pod): boolean {
    return (pod.spec.volumes ?? []).some(({ persistentVolumeClaim }) => {
      if (persistentVolumeClaim == null) return false
      const key = { namespace: pod.metadata.namespace ?? '', name: persistentVolumeClaim.claimName }
      const modes = this.#volumeClaims.get(key)?.spec.accessModes ?? []
      return !modes.some((mode) => mode === 'ReadWriteMany' || mode === 'ReadOnlyMany')
    })
  }

  /** Whether a rollout under way replaces the pod: its successor is a pod of its own. */
  isBeingReplaced(pod: Pod): boolean {
    const deployment = this.deploymentOf(pod)
    return deployment !== undefined && isOutdated(pod, deployment) && isUnderWay(deployment)
  }
}

/** What is wrong with the annotation of a workload; undefined if it can be read, or there is none. */
export function surgeAnnotationProblem({ metadata }: Pick<Deployment, 'metadata'>) {
  const value: unknown = ownValue(metadata.annotations, surgeAnnotation)
  if (value === undefined || value === 'true' || value === 'false') return undefined
  return {
    field: `metadata.annotations["${surgeAnnotation}"]`,
    message: `"${String(value).slice(0, shownCharacters)}" cannot be read and is ignored`,
    fix: 'use "true", "false", or remove the annotation',
  }
}

/** Why the pods of a Deployment are evicted as usual, a clause about it; undefined if a rollout replaces them. */
export function whyNoSurge(
  { metadata, spec }: Deployment,
  covering: readonly PodDisruptionBudget[],
): string | undefined {
  const { paused = false, replicas = 1, strategy, template } = spec
  if (metadata.deletionTimestamp !== undefined) return 'is being deleted'
  if (paused) return 'is paused; resume it'
  if (replicas === 0) return 'has no replicas'
  if (strategy?.type === 'Recreate') return 'has strategy Recreate; use RollingUpdate'
  const { maxSurge = '25%', maxUnavailable = '25%' } = strategy?.rollingUpdate ?? {}
  const surge = resolved(maxSurge, replicas, Math.ceil)
  if (surge === undefined || surge < 1) return `has maxSurge ${maxSurge}; allow 1 or more`
  if (ownValue(template.metadata?.annotations, annotations.doNotDisrupt) !== undefined)
    return `has pods with annotation ${annotations.doNotDisrupt}, which holds for rollouts by a drain too`
  const missing = missingIn({ spec })
  const strict = missing === 0 ? undefined : covering.find((budget) => missing > allowedBy(budget))
  if (strict === undefined) return undefined
  return `may lack ${counted(missing, 'pod')} during a rollout (maxUnavailable ${maxUnavailable}), more than PodDisruptionBudget ${keyOf(strict.metadata)} allows; set it to 0`
}

/** How many pods may be missing during a rollout. */
function missingIn({ spec: { replicas = 1, strategy } }: Pick<Deployment, 'spec'>): number {
  return resolved(strategy?.rollingUpdate?.maxUnavailable ?? '25%', replicas, Math.floor) ?? replicas
}

/** How many of its pods a PDB lets be unavailable at most; 0 if that is not known. */
function allowedBy(budget: PodDisruptionBudget): number {
  const { desiredHealthy, expectedPods } = budget.status ?? {}
  if (!isCurrent(budget) || desiredHealthy === undefined || expectedPods === undefined) return 0
  return Math.max(0, expectedPods - desiredHealthy)
}

/** @returns undefined if it is neither a number nor a percentage. */
function resolved(
  value: number | string,
  replicas: number,
  round: (amount: number) => number,
): number | undefined {
  if (typeof value === 'number') return value
  const percent = /^(\d{1,9})%$/.exec(value)?.[1]
  return percent === undefined ? undefined : round((Number(percent) * replicas) / 100)
}

/** @param node UID of the Node that is drained. */
export function surgeStep(pod: Pod, deployment: Deployment, node: string): SurgeStep {
  if (isOutdated(pod, deployment)) return isUnderWay(deployment) ? 'wait' : 'evict'
  return surgedFor(deployment).includes(node) ? 'evict' : 'restart'
}

export function surgedFor({ metadata }: Deployment): readonly string[] {
  return (ownValue(metadata.annotations, surgedForAnnotation) ?? '').split(',').filter((uid) => uid !== '')
}

/** Whether the pod was made before the last restart. */
function isOutdated(pod: Pod, { spec }: Deployment): boolean {
  return (
    ownValue(pod.metadata.annotations, restartedAtAnnotation) !==
    ownValue(spec.template.metadata?.annotations, restartedAtAnnotation)
  )
}

const isExceeded = ({ type, reason }: Pick<Condition, 'type' | 'reason'>) =>
  type === 'Progressing' && reason === 'ProgressDeadlineExceeded'

/** Whether the rollout of the current pod template has not progressed within its deadline. */
export function hasFailed({ metadata, status }: Deployment): boolean {
  const { conditions = [], observedGeneration = 0 } = status ?? {}
  return observedGeneration >= (metadata.generation ?? 0) && conditions.some(isExceeded)
}

/** Whether a rollout goes on: neither complete, as `kubectl rollout status` sees it, nor beyond its progress deadline. */
function isUnderWay(deployment: Deployment): boolean {
  const { metadata, spec, status = {} } = deployment
  const { availableReplicas = 0, observedGeneration = 0, updatedReplicas = 0 } = status
  if (spec.paused === true || metadata.deletionTimestamp !== undefined) return false
  if (observedGeneration < (metadata.generation ?? 0)) return true
  if (hasFailed(deployment)) return false
  const { replicas = 1 } = spec
  return (
    updatedReplicas < replicas ||
    (status.replicas ?? 0) > updatedReplicas ||
    availableReplicas < updatedReplicas
  )
}
