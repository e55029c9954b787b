import type { KubeObject, LabelSelector, LabelSelectorRequirement, ResourceType } from '@tenon/api'
import type { LocalApi, LocalHandler } from '../../contract.ts'
import {
  type LabelMatcher,
  labelMatcher,
  type Labels,
  type PodFacts,
  type SpreadConstraint,
} from '@tenon/filters'

interface Workload extends KubeObject {
  readonly spec?: { readonly selector?: LabelSelector }
}

interface Service extends KubeObject {
  readonly spec?: { readonly selector?: Labels }
}

const replicaSets = appsType('ReplicaSet', 'replicasets')
const statefulSets = appsType('StatefulSet', 'statefulsets')
const services: ResourceType<Service> = {
  group: '',
  version: 'v1',
  kind: 'Service',
  plural: 'services',
  namespaced: true,
}

/** Kubernetes' default constraints: spread over hosts, and less strictly over zones. */
const wishes = [
  { topologyKey: 'kubernetes.io/hostname', maxSkew: 3 },
  { topologyKey: 'topology.kubernetes.io/zone', maxSkew: 5 },
] as const

/**
 * Default spread of pods without constraints: pods of one ReplicaSet, StatefulSet or Service are spread by scores. It
 * never rejects a node.
 */
export class DefaultSpread {
  /** Selector by uid of the workload. */
  readonly #workloads = new Map<string, LabelSelector>()
  /** Services with a selector, by namespace and name. */
  readonly #services = new Map<
    string,
    Map<string, { readonly selector: Labels; readonly matcher: LabelMatcher }>
  >()
  readonly #stops: readonly (() => void)[]

  constructor(api: LocalApi) {
    for (const one of [...api.list(replicaSets), ...api.list(statefulSets)]) this.#setWorkload(one)
    for (const one of api.list(services)) this.#setService(one)
    const workloadHandler: LocalHandler<Workload> = {
      added: (one) => this.#setWorkload(one),
      deleted: (one) => this.#workloads.delete(one.metadata.uid ?? ''),
    }
    this.#stops = [
      api.subscribe(replicaSets, workloadHandler),
      api.subscribe(statefulSets, workloadHandler),
      api.subscribe(services, {
        added: (one) => this.#setService(one),
        updated: (one) => this.#setService(one),
        deleted: (one) => this.#services.get(one.metadata.namespace ?? '')?.delete(one.metadata.name),
      }),
    ]
  }

  stop(): void {
    for (const stop of this.#stops) stop()
  }

  /** The default constraints of a pod; none if it belongs to no workload or has its own. */
  of(facts: PodFacts): readonly SpreadConstraint[] {
    if ((facts.pod.spec.topologySpreadConstraints ?? []).length > 0) return []
    const owner = facts.pod.metadata.ownerReferences?.find((one) => one.controller === true)
    const workload = owner === undefined ? undefined : this.#workloads.get(owner.uid)
    const exposing = [...(this.#services.get(facts.namespace)?.values() ?? [])].filter((one) =>
      one.matcher.matches(facts.labels),
    )
    if (workload === undefined && exposing.length === 0) return []
    const selector = labelMatcher(
      workload ?? {},
      exposing.flatMap((one) => equalities(one.selector)),
    )
    return wishes.map(({ topologyKey, maxSkew }) => ({
      topologyKey,
      maxSkew,
      minDomains: 1,
      selector,
      honourAffinity: true,
      honourTaints: false,
    }))
  }

  #setWorkload(workload: Workload): void {
    const selector = workload.spec?.selector
    if (selector !== undefined) this.#workloads.set(workload.metadata.uid ?? '', selector)
  }

  #setService(service: Service): void {
    const { namespace = '', name } = service.metadata
    const selector = service.spec?.selector
    const known = this.#services.get(namespace) ?? new Map()
    this.#services.set(namespace, known)
    if (selector === undefined || Object.keys(selector).length === 0) known.delete(name)
    else known.set(name, { selector, matcher: labelMatcher({ matchLabels: selector }) })
  }
}

function equalities(labels: Labels): LabelSelectorRequirement[] {
  return Object.entries(labels).map(([key, value]) => ({ key, operator: 'In', values: [value] }))
}

function appsType(kind: string, plural: string): ResourceType<Workload> {
  return { group: 'apps', version: 'v1', kind, plural, namespaced: true }
}
