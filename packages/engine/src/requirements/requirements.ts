/** Requirements on several label keys at once (scheduling.md 4). */
import {
  labels,
  type NodeSelectorRequirement,
  type NodeSelectorTerm,
  type PodSpec,
  type Requirement,
} from '@tenon/api'
import {
  allowsAbsence,
  intersection,
  intersects,
  oneOf,
  renderValueSet,
  toRequirements,
  type ValueSet,
  valueSet,
} from './requirement.ts'

/** Allowed values by their own (normalised) key; a key that is not there may take any value. */
export type Requirements = ReadonlyMap<string, ValueSet>

/** What is offered and what is wanted of one key, where nothing suits both. */
export interface Conflict {
  readonly have: ValueSet
  readonly want: ValueSet
}

/** Why two sets of requirements cannot both hold. */
export type Incompatibility =
  | {
      readonly kind: 'unknownLabel'
      readonly key: string
      /** A known key that may have been meant. */
      readonly hint?: string
    }
  | {
      readonly kind: 'noOverlap'
      /** Every key in conflict, in alphabetical order. */
      readonly conflicts: readonly Conflict[]
    }

/** The requirements that all of `sets` allow; the same key twice intersects. */
export function requirementsOf(sets: Iterable<ValueSet>): Requirements {
  const all = new Map<string, ValueSet>()
  for (const set of sets) {
    const before = all.get(set.key)
    all.set(set.key, before === undefined ? set : intersection(before, set))
  }
  return all
}

/** Requirements as NodePools, NodeClaims and instance types state them. */
export function parseRequirements(list: readonly Requirement[]): Requirements {
  return requirementsOf(list.map(valueSet))
}

/** Every label as an `In` of its one value. */
export function labelRequirements(valueByKey: Readonly<Record<string, string>>): Requirements {
  return requirementsOf(Object.entries(valueByKey).map(([key, value]) => oneOf(key, value)))
}

/** What both allow. */
export function merged(a: Requirements, b: Requirements): Requirements {
  if (b.size === 0) return a
  if (a.size === 0) return b
  return requirementsOf([...a.values(), ...b.values()])
}

/**
 * Whether something that offers `have` can satisfy `want`. Keys in `mayBeUndefined` need not be
 * offered; others must be, unless absence is what is wanted. Asked for every pod and candidate, so
 * it allocates nothing; {@link incompatibility} says why not.
 */
export function compatible(
  have: Requirements,
  want: Requirements,
  mayBeUndefined: ReadonlySet<string>,
): boolean {
  for (const wanted of want.values()) {
    const offered = have.get(wanted.key)
    if (offered === undefined) {
      if (!allowsAbsence(wanted) && !mayBeUndefined.has(wanted.key)) return false
    } else if (!agree(offered, wanted)) return false
  }
  return true
}

/** Whether the two agree on every key that both name. */
export function overlaps(a: Requirements, b: Requirements): boolean {
  const [fewer, more] = a.size < b.size ? [a, b] : [b, a]
  for (const set of fewer.values()) {
    const other = more.get(set.key)
    if (other !== undefined && !agree(set, other)) return false
  }
  return true
}

/** Sets of one key agree when a value suits both, or the absence of the label does. */
function agree(a: ValueSet, b: ValueSet): boolean {
  return intersects(a, b) || (allowsAbsence(a) && allowsAbsence(b))
}

/** Why {@link compatible} is false; undefined when it is true. */
export function incompatibility(
  have: Requirements,
  want: Requirements,
  mayBeUndefined: ReadonlySet<string>,
): Incompatibility | undefined {
  let unknown: string | undefined
  for (const wanted of want.values()) {
    const { key } = wanted
    if (have.has(key) || mayBeUndefined.has(key) || allowsAbsence(wanted)) continue
    if (unknown === undefined || key < unknown) unknown = key
  }
  if (unknown !== undefined) {
    const hint = similarKey(unknown, mayBeUndefined) ?? similarKey(unknown, have.keys())
    return { kind: 'unknownLabel', key: unknown, ...(hint !== undefined && { hint }) }
  }
  const conflicts = conflictsOf(have, want)
  return conflicts.length === 0 ? undefined : { kind: 'noOverlap', conflicts }
}

/** The keys that both name and on which they do not agree, in alphabetical order. */
export function conflictsOf(have: Requirements, want: Requirements): readonly Conflict[] {
  const found: Conflict[] = []
  for (const wanted of want.values()) {
    const offered = have.get(wanted.key)
    if (offered !== undefined && !agree(offered, wanted)) found.push({ have: offered, want: wanted })
  }
  return found.toSorted((a, b) => (a.want.key < b.want.key ? -1 : 1))
}

/** The first of `known` that contains the key, or ends with its part after the slash. */
function similarKey(key: string, known: Iterable<string>): string | undefined {
  const name = key.slice(key.indexOf('/') + 1)
  return [...known].toSorted().find((other) => other.includes(key) || (name !== '' && other.endsWith(name)))
}

/** The API form, keys in alphabetical order. */
export function requirementList(requirements: Requirements): readonly Requirement[] {
  return [...requirements.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1)).flatMap(toRequirements)
}

/** What a pod asks of its node's labels, hard rules and the heaviest preference apart. */
export interface PodRequirements {
  /** Node selector and the first required node affinity term. */
  readonly strict: Requirements
  /** `strict` and the heaviest preferred node affinity term. */
  readonly preferred: Requirements
}

/** Requirements of a pod (scheduling.md 4, "Pod requirements"). */
export function podRequirements(spec: PodSpec): PodRequirements {
  const selector = Object.entries(spec.nodeSelector ?? {}).map(([key, value]) => oneOf(key, value))
  const affinity = spec.affinity?.nodeAffinity
  const required = affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms[0]
  const heaviest = (affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).toSorted(
    (a, b) => b.weight - a.weight,
  )[0]?.preference.matchExpressions
  const strict = requirementsOf([...selector, ...(required === undefined ? [] : setsOf(required))])
  return {
    strict,
    preferred: heaviest === undefined ? strict : merged(strict, requirementsOf(expressions(heaviest))),
  }
}

/** The pod's hard requirements once per required node affinity term; any one of them will do. */
export function requiredAlternatives(spec: PodSpec): readonly Requirements[] {
  const selector = Object.entries(spec.nodeSelector ?? {}).map(([key, value]) => oneOf(key, value))
  const terms =
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  if (terms.length === 0) return [requirementsOf(selector)]
  return terms.map((term) => requirementsOf([...selector, ...setsOf(term)]))
}

/** No host name is in it. */
const nowhere: ValueSet = { key: labels.hostname, complement: true, values: new Set(), gte: 1n, lte: 0n }

/** Value sets of a required term; to kube-scheduler one that says nothing is met by no node. */
function setsOf({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): ValueSet[] {
  return matchExpressions.length + matchFields.length === 0 ? [nowhere] : expressions(matchExpressions)
}

/** Value sets of expressions: many shapes share one that lists thousands of values. */
const known = new WeakMap<NodeSelectorRequirement, ValueSet>()

function expressions(list: readonly NodeSelectorRequirement[]): ValueSet[] {
  return list.map((expression) => {
    let set = known.get(expression)
    if (set === undefined) {
      set = valueSet(expression)
      known.set(expression, set)
    }
    return set
  })
}

/** Keys no user can have written: the simulation's own. */
const hidden: ReadonlySet<string> = new Set<string>([labels.hostname, labels.registered, labels.initialized])

/** One line for people: keys in order, comma-joined, without the keys of the simulation. */
export function renderRequirements(requirements: Requirements): string {
  return [...requirements.values()]
    .filter((set) => !hidden.has(set.key))
    .map(renderValueSet)
    .toSorted()
    .join(', ')
}
