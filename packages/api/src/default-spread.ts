/** The cluster's default spread for pods that ask for none (scheduling.md 9.8). */
import type {
  LabelSelector,
  LabelSelectorRequirement,
  OwnerReference,
  Pod,
  ReplicationController,
  SelectingWorkload,
  Service,
  TopologySpreadConstraint,
} from './objects.ts'
import { ownValue } from './own.ts'

/** Finds the Services and controllers that select a pod. Undefined: it does not exist or is not known. */
export interface SelectorLookups {
  /** Services of a namespace, in any order. */
  readonly services: (namespace: string) => readonly Service[]
  readonly replicationController: (namespace: string, name: string) => ReplicationController | undefined
  readonly replicaSet: (namespace: string, name: string) => SelectingWorkload | undefined
  readonly statefulSet: (namespace: string, name: string) => SelectingWorkload | undefined
}

/**
 * Adds the default constraints to a pod. Their selector is deduced from the pod's Services and controller.
 * Returns the pod itself if it has constraints of its own, or if nothing selects it.
 */
export function withDefaultSpread(
  pod: Pod,
  constraints: readonly TopologySpreadConstraint[],
  lookups: SelectorLookups,
): Pod {
  if (constraints.length === 0 || (pod.spec.topologySpreadConstraints ?? []).length > 0) return pod
  const labelSelector = deducedSelector(pod, lookups)
  if (labelSelector === undefined) return pod
  const topologySpreadConstraints = constraints.map((constraint) => ({ ...constraint, labelSelector }))
  return { ...pod, spec: { ...pod.spec, topologySpreadConstraints } }
}

/**
 * Selects the pods of the same application, as kube-scheduler does; undefined if no Service or controller
 * selects the pod.
 */
function deducedSelector(pod: Pod, lookups: SelectorLookups): LabelSelector | undefined {
  const namespace = pod.metadata.namespace ?? ''
  const owner = (pod.metadata.ownerReferences ?? []).find((reference) => reference.controller === true)
  const isReplicated = owner?.apiVersion === 'v1' && owner.kind === 'ReplicationController'
  const matchLabels = {
    ...serviceLabels(pod, lookups.services(namespace)),
    ...(isReplicated ? lookups.replicationController(namespace, owner.name)?.spec?.selector : undefined),
  }
  const matchExpressions = workloadExpressions(workloadOf(owner, namespace, lookups)?.spec.selector)
  if (Object.keys(matchLabels).length === 0 && matchExpressions.length === 0) return undefined
  return { matchLabels, matchExpressions }
}

/**
 * Merges the selectors of all Services that select the pod. If two differ on a key, the Service whose name
 * sorts last wins.
 */
function serviceLabels(pod: Pod, services: readonly Service[]): Readonly<Record<string, string>> {
  const choosing = services
    .map((service) => ({ name: service.metadata.name, labels: service.spec?.selector ?? undefined }))
    .filter(({ labels }) => labels !== undefined)
    .filter(({ labels = {} }) =>
      Object.entries(labels).every(([key, value]) => ownValue(pod.metadata.labels, key) === value),
    )
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return Object.fromEntries(choosing.flatMap(({ labels = {} }) => Object.entries(labels)))
}

function workloadOf(
  owner: OwnerReference | undefined,
  namespace: string,
  lookups: SelectorLookups,
): SelectingWorkload | undefined {
  if (owner?.apiVersion !== 'apps/v1') return undefined
  if (owner.kind === 'ReplicaSet') return lookups.replicaSet(namespace, owner.name)
  return owner.kind === 'StatefulSet' ? lookups.statefulSet(namespace, owner.name) : undefined
}

/** Returns expressions rather than labels, so that they do not overwrite the labels of a Service. */
function workloadExpressions(selector: LabelSelector | undefined): readonly LabelSelectorRequirement[] {
  const equalities = Object.entries(selector?.matchLabels ?? {}).map(
    ([key, value]): LabelSelectorRequirement => ({ key, operator: 'In', values: [value] }),
  )
  return [...equalities, ...(selector?.matchExpressions ?? [])]
}
