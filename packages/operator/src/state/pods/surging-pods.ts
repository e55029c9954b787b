/** Pods that a rollout of their Deployment replaces before their node goes, so that nobody evicts them (wanted.md 3). */
import {
  annotations,
  type Condition,
  controllerOf,
  type Deployment,
  matchesSelector,
  ownValue,
  type Pod,
  type PodDisruptionBudget,
} from '@tenon/api'
import type { Cache } from '@tenon/kube'
import { Listeners } from '@tenon/runtime'
import type { Settings } from '../../settings.ts'
import { isUnreadable } from '../readable.ts'
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

export class SurgingPods {
  readonly #deployments: Cache<Deployment> | undefined
  readonly #scope: Settings['surgeOnDrain']
  /** Whether pods of a Deployment surge may have changed. */
  readonly changes: Listeners<undefined> = new Listeners()

  constructor(deployments: Cache<Deployment> | undefined, scope: Settings['surgeOnDrain']) {
    this.#deployments = deployments
    this.#scope = scope
    deployments?.onChange((change) => {
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
      whyNoSurge(deployment, covering) === undefined
    )
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
  return `may lack ${missing} pod(s) during a rollout (maxUnavailable ${maxUnavailable}), more than PodDisruptionBudget ${keyOf(strict.metadata)} allows; set it to 0`
}

/** How many pods may be missing during a rollout. */
function missingIn({ spec: { replicas = 1, strategy } }: Pick<Deployment, 'spec'>): number {
  return resolved(strategy?.rollingUpdate?.maxUnavailable ?? '25%', replicas, Math.floor) ?? replicas
}

/** How many of its pods a PDB lets be unavailable at most; 0 if that is not known. */
function allowedBy({ status }: PodDisruptionBudget): number {
  const { desiredHealthy, expectedPods } = status ?? {}
  if (desiredHealthy === undefined || expectedPods === undefined) return 0
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

/** Whether a rollout has not progressed within its deadline. */
export function hasFailed({ status }: Deployment): boolean {
  return (status?.conditions ?? []).some(isExceeded)
}

/** Whether a rollout goes on: neither complete, as `kubectl rollout status` sees it, nor beyond its progress deadline. */
function isUnderWay({ metadata, spec, status = {} }: Deployment): boolean {
  const { availableReplicas = 0, conditions = [], observedGeneration = 0, updatedReplicas = 0 } = status
  if (spec.paused === true || metadata.deletionTimestamp !== undefined) return false
  if (observedGeneration < (metadata.generation ?? 0)) return true
  if (conditions.some(isExceeded)) return false
  const { replicas = 1 } = spec
  return (
    updatedReplicas < replicas ||
    (status.replicas ?? 0) > updatedReplicas ||
    availableReplicas < updatedReplicas
  )
}
