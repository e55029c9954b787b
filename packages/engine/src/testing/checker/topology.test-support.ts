/** Where every pod can be in the end, and whether rules among pods hold there. */
import { labels as names, normalizedLabel, type Pod, type PodAffinityTerm, type Taint } from '@tenon/api'
import type { SchedulingInput } from '../../input/input.ts'
import type { SchedulingResult } from '../../input/result.ts'
import { claimName, typesOf } from './claims.test-support.ts'
import { type Labels, normalised, selectorMatches } from './labels.test-support.ts'
import { possibleValues } from './launches.test-support.ts'
import { nameOf, nodeLabels } from './nodes.test-support.ts'

/** A pod and the node, or the claim, it is on. */
export interface Located {
  readonly pod: Pod
  /** Equal for pods on one node. */
  readonly place: string
  /** Whether this decision put it there. */
  readonly isNew: boolean
  /** Values that a label can have there; none = no such label. */
  readonly domains: (key: string) => readonly string[]
  /** Labels and taints of a node that is there. */
  readonly node?: { readonly labels: Labels; readonly taints: readonly Taint[] }
}

/** Every pod that has a place: bound pods that this decision does not move, and placed ones. */
export function locate(input: SchedulingInput, result: SchedulingResult): readonly Located[] {
  const batch = new Set(input.pods.map((pod) => pod.metadata.uid))
  const located: Located[] = []
  for (const pod of input.topology.pods) {
    const node = input.topology.nodes.get(pod.spec.nodeName ?? '')
    if (node === undefined || batch.has(pod.metadata.uid)) continue
    const labels = normalised(node.labels)
    const domains = (key: string) => valueIn({ ...labels, [names.hostname]: node.hostname }, key)
    const at = { labels, taints: node.taints }
    located.push({ pod, place: `host ${node.hostname}`, isNew: false, domains, node: at })
  }
  for (const { pod, node: name } of result.placements) {
    const node = input.nodes.find((each) => each.name === name)
    if (node === undefined) continue
    const labels = nodeLabels(node)
    const taints = input.topology.nodes.get(name)?.taints ?? node.taints
    const place = `host ${labels[names.hostname]}`
    const domains = (key: string) => valueIn(labels, key)
    located.push({ pod, place, isNew: true, domains, node: { labels, taints } })
  }
  for (const [index, claim] of result.claims.entries()) {
    const place = claimName(claim, index)
    const known = new Map<string, readonly string[]>([[names.hostname, [place]]])
    const domains = (key: string) => {
      const values = known.get(key) ?? possibleValues(claim, typesOf(claim, input), key)
      known.set(key, values)
      return values
    }
    for (const pod of claim.pods) located.push({ pod, place, isNew: true, domains })
  }
  return located
}

function valueIn(labels: Labels, key: string): readonly string[] {
  const value = labels[normalizedLabel(key)]
  return value === undefined ? [] : [value]
}

const isTerminal = ({ status }: Pod) => status?.phase === 'Succeeded' || status?.phase === 'Failed'
const isTerminating = ({ metadata }: Pod) => metadata.deletionTimestamp !== undefined

/** Whether a pod counts for affinity and anti-affinity: until it has ended. */
const isPresent = ({ pod, isNew }: Located): boolean => isNew || !isTerminal(pod)

/** Whether a pod counts for spreading. */
export const isSpread = (each: Located): boolean =>
  isPresent(each) && (each.isNew || !isTerminating(each.pod))

/** Whether a term of one pod speaks of another pod. */
export function termSelects(term: PodAffinityTerm, owner: Pod, other: Pod, input: SchedulingInput): boolean {
  const listed = term.namespaces ?? []
  const isOwn = listed.length === 0 && term.namespaceSelector === undefined
  const namespace = other.metadata.namespace ?? ''
  const isSelected =
    term.namespaceSelector !== undefined &&
    selectorMatches(term.namespaceSelector, input.topology.namespaces.get(namespace))
  const inNamespace = isOwn
    ? namespace === owner.metadata.namespace
    : listed.includes(namespace) || isSelected
  return inNamespace && selectorMatches(term.labelSelector, other.metadata.labels)
}

/** Required terms of a pod, of one kind. */
export function requiredTerms(pod: Pod, kind: 'podAffinity' | 'podAntiAffinity'): readonly PodAffinityTerm[] {
  return pod.spec.affinity?.[kind]?.requiredDuringSchedulingIgnoredDuringExecution ?? []
}

/** Whether all required affinity terms of the owner select the other: that is how kube-scheduler counts. */
function allSelect(owner: Pod, other: Pod, input: SchedulingInput): boolean {
  return requiredTerms(owner, 'podAffinity').every((term) => termSelects(term, owner, other, input))
}

export const meet = (a: Located, b: Located, key: string): boolean =>
  a.place === b.place
    ? a.domains(key).length > 0
    : a.domains(key).some((domain) => b.domains(key).includes(domain))

/** Pods that can end up in one domain although one of them forbids it. */
export function checkAntiAffinity(input: SchedulingInput, located: readonly Located[]): readonly string[] {
  return located.flatMap((owner) =>
    requiredTerms(owner.pod, 'podAntiAffinity').flatMap((term) =>
      located
        .filter((other) => other.pod !== owner.pod && (owner.isNew || other.isNew))
        .filter((other) => !isTerminal(owner.pod) && isPresent(other))
        .filter(() => owner.isNew || hasLabel(owner, term.topologyKey))
        .filter((other) => termSelects(term, owner.pod, other.pod, input))
        .filter((other) => meet(owner, other, normalizedLabel(term.topologyKey)))
        .map(
          (other) =>
            `${nameOf(owner.pod)} on ${owner.place}: anti-affinity over ${term.topologyKey} against ` +
            `${nameOf(other.pod)} on ${other.place}`,
        ),
    ),
  )
}

/** A node whose host name only its name tells has no such label for pods that are bound to it. */
function hasLabel(owner: Located, key: string): boolean {
  return owner.node === undefined || normalizedLabel(key) in owner.node.labels
}

/** Pods whose required affinity nobody in their domain meets. */
export function checkAffinity(input: SchedulingInput, located: readonly Located[]): readonly string[] {
  const counted = located.filter(isPresent)
  const alone = counted
    .filter((each) => each.isNew)
    .flatMap((each) =>
      requiredTerms(each.pod, 'podAffinity').flatMap((term) => {
        const key = normalizedLabel(term.topologyKey)
        const others = counted.filter(
          (other) => other.pod !== each.pod && allSelect(each.pod, other.pod, input),
        )
        return isAccompanied(each, others, key) ? [] : [{ each, term, key, others }]
      }),
    )
  return alone
    .filter(({ each, key, others }) => {
      if (each.domains(key).length === 0 || !allSelect(each.pod, each.pod, input)) return true
      // The first of a series that selects itself may start anywhere, unless there is one elsewhere: a pod
      // that was there before, or another lonely one of the series.
      const settled = others.filter((other) => other.domains(key).length === 1)
      return settled.some(
        (other) =>
          !other.isNew ||
          alone.some(
            (lone) => lone.each === other && lone.key === key && allSelect(other.pod, each.pod, input),
          ),
      )
    })
    .map(
      ({ each, term }) =>
        `${nameOf(each.pod)} on ${each.place}: affinity over ${term.topologyKey} is not met`,
    )
}

/** Whether each domain a pod can be in surely holds one of the others. */
function isAccompanied(each: Located, others: readonly Located[], key: string): boolean {
  const domains = each.domains(key)
  if (domains.length === 0) return false
  if (others.some((other) => other.place === each.place)) return true
  return domains.every((domain) =>
    others.some((other) => other.domains(key).length === 1 && other.domains(key)[0] === domain),
  )
}
