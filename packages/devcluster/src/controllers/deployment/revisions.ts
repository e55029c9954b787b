import { isDeepStrictEqual } from 'node:util'
import { type PodTemplateSpec, setOwn } from '@tenon/api'
import type { Deployment, ReplicaSet } from '../objects/workloads.ts'

export const templateHashLabel = 'pod-template-hash'
export const revisionAnnotation = 'deployment.kubernetes.io/revision'
const revisionHistoryAnnotation = 'deployment.kubernetes.io/revision-history'
export const desiredReplicasAnnotation = 'deployment.kubernetes.io/desired-replicas'
export const maxReplicasAnnotation = 'deployment.kubernetes.io/max-replicas'

/** Annotations that are not copied from a Deployment to its ReplicaSets. */
const ownAnnotations = new Set([
  'kubectl.kubernetes.io/last-applied-configuration',
  revisionAnnotation,
  revisionHistoryAnnotation,
  desiredReplicasAnnotation,
  maxReplicasAnnotation,
  'deprecated.deployment.rollback.to',
])

/** The revision of a Deployment or ReplicaSet; 0 if it has none. */
export function revisionOf(object: Deployment | ReplicaSet): number {
  return Number.parseInt(object.metadata.annotations?.[revisionAnnotation] ?? '0', 10) || 0
}

/** Whether two templates are equal apart from the hash label. */
function sameTemplate(a: PodTemplateSpec, b: PodTemplateSpec): boolean {
  if (a.spec !== b.spec && !isDeepStrictEqual(a.spec, b.spec)) return false
  return isDeepStrictEqual(comparableMetadata(a), comparableMetadata(b))
}

function comparableMetadata(template: PodTemplateSpec): unknown {
  const { labels, ...rest } = { ...template.metadata, creationTimestamp: undefined }
  const { [templateHashLabel]: _hash, ...others } = labels ?? {}
  return { ...rest, annotations: rest.annotations ?? {}, labels: others }
}

/** The ReplicaSet of the Deployment's current template (the oldest one, if there are several). */
export function findNewSet(deployment: Deployment, sets: readonly ReplicaSet[]): ReplicaSet | undefined {
  return [...sets].sort(byCreation).find((set) => sameTemplate(set.spec.template, deployment.spec.template))
}

export function byCreation(a: ReplicaSet, b: ReplicaSet): number {
  const left = a.metadata.creationTimestamp ?? ''
  const right = b.metadata.creationTimestamp ?? ''
  if (left !== right) return left < right ? -1 : 1
  return revisionOf(a) - revisionOf(b) || (a.metadata.name < b.metadata.name ? -1 : 1)
}

/**
 * Annotations of the current ReplicaSet: those of the Deployment, the revision, and its revisions before a rollback.
 */
export function newSetAnnotations(
  deployment: Deployment,
  set: ReplicaSet | undefined,
  revision: number,
): Record<string, string> {
  const annotations: Record<string, string> = { ...set?.metadata.annotations }
  for (const [key, value] of Object.entries(deployment.metadata.annotations ?? {})) {
    if (!ownAnnotations.has(key)) setOwn(annotations, key, value)
  }
  const old = set === undefined ? 0 : revisionOf(set)
  if (old >= revision) return annotations
  annotations[revisionAnnotation] = String(revision)
  if (old > 0) {
    const history = annotations[revisionHistoryAnnotation]
    annotations[revisionHistoryAnnotation] = history === undefined ? String(old) : `${history},${old}`
  }
  return annotations
}
