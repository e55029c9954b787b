/** The kinds that commands know, with all names that kubectl accepts. */
import { autoscalingKinds, karpenterKinds, kinds, podGroupKinds, type ResourceType } from '@tenon/api'
import { KubectlError } from '../errors.ts'

/** A kind and its names on a command line. */
export interface NamedKind {
  readonly type: ResourceType
  readonly singular: string
  readonly shortNames: readonly string[]
}

function named(type: ResourceType, ...shortNames: readonly string[]): NamedKind {
  return { type, singular: type.kind.toLowerCase(), shortNames }
}

export const podKind: NamedKind = named(kinds.pod, 'po')
export const nodeKind: NamedKind = named(kinds.node, 'no')
export const nodeClaimKind: NamedKind = named(karpenterKinds.nodeClaim)
export const nodePoolKind: NamedKind = named(karpenterKinds.nodePool)

export const requestKind: NamedKind = named(autoscalingKinds.provisioningRequest, 'provreq', 'provreqs')
export const bufferKind: NamedKind = named(autoscalingKinds.capacityBuffer, 'cb')
export const quotaKind: NamedKind = named(autoscalingKinds.capacityQuota, 'cq')

/** Kinds of `explain` and `get`. */
export const askedKinds: readonly NamedKind[] = [podKind, nodeKind, nodeClaimKind, nodePoolKind]

/** PodGroups of Kubernetes, coscheduling and Volcano; the bare name means any of them. */
export const podGroupNamedKinds: readonly NamedKind[] = [
  ...podGroupKinds.kubernetes.slice(0, 1).map((type) => named(type, 'pg', 'pgs')),
  named(podGroupKinds.coscheduling),
  named(podGroupKinds.volcano),
]

/** Kinds whose pods `explain` gathers. */
export const workloadKinds: readonly NamedKind[] = [
  named(kinds.deployment, 'deploy'),
  named(workload('apps', 'StatefulSet', 'statefulsets'), 'sts'),
  named(workload('apps', 'DaemonSet', 'daemonsets'), 'ds'),
  named(workload('apps', 'ReplicaSet', 'replicasets'), 'rs'),
  named(workload('batch', 'Job', 'jobs')),
]

export const cronJobKind: NamedKind = named(workload('batch', 'CronJob', 'cronjobs'), 'cj')

function workload(group: string, kind: string, plural: string): ResourceType {
  return { group, version: 'v1', kind, plural, namespaced: true }
}

/** Kinds of `explain`. */
export const explainedKinds: readonly NamedKind[] = [
  ...askedKinds,
  ...workloadKinds,
  requestKind,
  ...podGroupNamedKinds,
]

/** Kinds of `get`. */
export const listedKinds: readonly NamedKind[] = [...askedKinds, bufferKind, quotaKind]

/** `nodes`, `nodepools.karpenter.sh`. */
function qualifiedPlural({ plural, group }: ResourceType): string {
  return group === '' ? plural : `${plural}.${group}`
}

/** `node/a`, `nodepool.karpenter.sh/a`, as `-o name` prints them. */
export function qualifiedName({ type, singular }: NamedKind, name: string): string {
  return `${type.group === '' ? singular : `${singular}.${type.group}`}/${name}`
}

/**
 * Finds a kind by its singular, plural or short name, in any case, with or without group and version.
 * @throws KubectlError if it is not among `among`.
 */
export function kindNamed(text: string, among: readonly NamedKind[] = askedKinds): NamedKind {
  const found = among.find((kind) => isNameOf(kind, text))
  if (found === undefined) throw new KubectlError(`error: the server doesn't have a resource type "${text}"`)
  return found
}

export function isNameOf({ type, singular, shortNames }: NamedKind, text: string): boolean {
  const asked = text.toLowerCase()
  const { plural, group, version } = type
  return [plural, singular, ...shortNames].some(
    (name) => asked === name || asked === `${name}.${group}` || asked === `${name}.${version}.${group}`,
  )
}

/** The error for an object that does not exist. */
export function notFound({ type }: NamedKind, name: string): KubectlError {
  return new KubectlError(`Error from server (NotFound): ${qualifiedPlural(type)} "${name}" not found`)
}
