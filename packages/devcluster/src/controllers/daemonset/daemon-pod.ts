import type { Affinity, Node, NodeSelectorTerm, Pod, PodSpec, Toleration } from '@tenon/api'
import { nodeAllowed, untolerated } from '../objects/node-matching.ts'
import { podFromTemplate } from '../objects/pod-factory.ts'
import { revisionHashLabel } from '../objects/revision-history.ts'
import { type DaemonSetObject, workloads } from '../objects/workloads.ts'

const nodeTaint = (name: string) => `node.kubernetes.io/${name}`

/** Tolerations of every daemon pod, which stays on its node in nearly all conditions. */
const daemonTolerations: readonly Toleration[] = [
  { key: nodeTaint('not-ready'), operator: 'Exists', effect: 'NoExecute' },
  { key: nodeTaint('unreachable'), operator: 'Exists', effect: 'NoExecute' },
  { key: nodeTaint('disk-pressure'), operator: 'Exists', effect: 'NoSchedule' },
  { key: nodeTaint('memory-pressure'), operator: 'Exists', effect: 'NoSchedule' },
  { key: nodeTaint('pid-pressure'), operator: 'Exists', effect: 'NoSchedule' },
  { key: nodeTaint('unschedulable'), operator: 'Exists', effect: 'NoSchedule' },
]
const hostNetworkToleration: Toleration = {
  key: nodeTaint('network-unavailable'),
  operator: 'Exists',
  effect: 'NoSchedule',
}

/** The pod of a DaemonSet for any node: its template with the daemon tolerations. */
function daemonPodSpec(set: DaemonSetObject): PodSpec {
  const { spec } = set.spec.template
  const extra = spec.hostNetwork ? [...daemonTolerations, hostNetworkToleration] : daemonTolerations
  const given = spec.tolerations ?? []
  const same = (a: Toleration, b: Toleration) =>
    a.key === b.key && a.effect === b.effect && a.operator === b.operator && a.value === b.value
  const kept = given.filter((toleration) => !extra.some((each) => same(each, toleration)))
  return { ...spec, tolerations: [...kept, ...extra] }
}

export interface DaemonEligibility {
  readonly run: boolean
  /** Whether an existing pod may stay (only NoExecute taints evict it). */
  readonly stay: boolean
}

/** Whether a DaemonSet's pod should run on a node. */
function eligibility(spec: PodSpec, node: Node): DaemonEligibility {
  if (spec.nodeName !== undefined && spec.nodeName !== '' && spec.nodeName !== node.metadata.name) {
    return { run: false, stay: false }
  }
  if (!nodeAllowed(spec, node)) return { run: false, stay: false }
  const against = (effects: readonly ('NoSchedule' | 'NoExecute')[]) =>
    untolerated(node.spec?.taints, spec.tolerations, effects).length === 0
  return { run: against(['NoSchedule', 'NoExecute']), stay: against(['NoExecute']) }
}

/** Caches {@link eligibility}, as specs and nodes are immutable. */
export class EligibleNodes {
  readonly #known = new WeakMap<object, KnownSet>()
  /** Incremented when a node is added, removed or changed in a relevant way. */
  #version = 0

  /** Call it for every change of a node that may affect eligibility. */
  nodesChanged(): void {
    this.#version++
  }

  /** The pod of the set for any node. */
  specOf(set: DaemonSetObject): PodSpec {
    return this.#knownOf(set).spec
  }

  /** For all nodes, by name; valid until the next change. */
  all(set: DaemonSetObject, nodes: { values(): Iterable<Node> }): ReadonlyMap<string, DaemonEligibility> {
    const known = this.#knownOf(set)
    if (known.all?.version === this.#version) return known.all.answers
    const answers = new Map<string, DaemonEligibility>()
    for (const node of nodes.values()) answers.set(node.metadata.name, this.of(set, node))
    known.all = { version: this.#version, answers }
    return answers
  }

  of(set: DaemonSetObject, node: Node): DaemonEligibility {
    const known = this.#knownOf(set)
    let answer = known.nodes.get(node)
    if (answer === undefined) {
      answer = eligibility(known.spec, node)
      known.nodes.set(node, answer)
    }
    return answer
  }

  #knownOf(set: DaemonSetObject): KnownSet {
    let known = this.#known.get(set.spec)
    if (known === undefined) {
      known = { spec: daemonPodSpec(set), nodes: new WeakMap(), all: undefined }
      this.#known.set(set.spec, known)
    }
    return known
  }
}

/** The results for one version of a DaemonSet. */
interface KnownSet {
  readonly spec: PodSpec
  readonly nodes: WeakMap<Node, DaemonEligibility>
  all: { readonly version: number; readonly answers: ReadonlyMap<string, DaemonEligibility> } | undefined
}

/** The pod for one node; the scheduler binds it there by node affinity on the node's name. */
export function daemonPod(set: DaemonSetObject, spec: PodSpec, nodeName: string, hash: string): Pod {
  const pod = podFromTemplate(set, workloads.daemonSet, set.spec.template)
  return {
    ...pod,
    metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, [revisionHashLabel]: hash } },
    spec: { ...spec, affinity: pinnedTo(spec.affinity, nodeName) },
  }
}

function pinnedTo(affinity: Affinity | undefined, nodeName: string): Affinity {
  const matchFields = [{ key: 'metadata.name', operator: 'In' as const, values: [nodeName] }]
  const required = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  const terms: readonly NodeSelectorTerm[] = required?.nodeSelectorTerms ?? [{}]
  return {
    ...affinity,
    nodeAffinity: {
      ...affinity?.nodeAffinity,
      requiredDuringSchedulingIgnoredDuringExecution: {
        nodeSelectorTerms: terms.map((term) => ({ ...term, matchFields })),
      },
    },
  }
}

/** The node of a daemon pod, also before it is bound. */
export function nodeOf(pod: Pod): string | undefined {
  if (pod.spec.nodeName !== undefined && pod.spec.nodeName !== '') return pod.spec.nodeName
  const required = pod.spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution
  for (const term of required?.nodeSelectorTerms ?? []) {
    const field = term.matchFields?.find((each) => each.key === 'metadata.name' && each.operator === 'In')
    if (field?.values?.length === 1) return field.values[0]
  }
  return undefined
}
