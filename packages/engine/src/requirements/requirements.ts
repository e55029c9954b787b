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

/** Value sets by their normalised key; a missing key allows any value. */
export type Requirements = ReadonlyMap<string, ValueSet>

/** A key for which no offered value is wanted. */
export interface Conflict {
  readonly have: ValueSet
  readonly want: ValueSet
}

/** Why two sets of requirements cannot both hold. */
export type Incompatibility =
  | {
      readonly kind: 'unknownLabel'
      readonly key: string
      /** A known key that the user may have meant. */
      readonly hint?: string
    }
  | {
      readonly kind: 'noOverlap'
      /** In alphabetical order. */
      readonly conflicts: readonly Conflict[]
    }

/** The intersection of `sets`. */
export function requirementsOf(sets: Iterable<ValueSet>): Requirements {
  const all = new Map<string, ValueSet>()
  for (const set of sets) {
    const before = all.get(set.key)
    all.set(set.key, before === undefined ? set : intersection(before, set))
  }
  return all
}

export function parseRequirements(list: readonly Requirement[]): Requirements {
  return requirementsOf(list.map(valueSet))
}

export function labelRequirements(valueByKey: Readonly<Record<string, string>>): Requirements {
  return requirementsOf(Object.entries(valueByKey).map(([key, value]) => oneOf(key, value)))
}

/** The intersection. */
export function merged(a: Requirements, b: Requirements): Requirements {
  if (b.size === 0) return a
  if (a.size === 0) return b
  return requirementsOf([...a.values(), ...b.values()])
}

/**
 * Whether a node with `have` can meet `want`. Keys in `mayBeUndefined` need not be in `have`; others must be,
 * unless `want` accepts their absence. Called for every pod and candidate, so it allocates nothing; {@link
 * incompatibility} gives the reason.
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

/** Whether the two agree on every key that both have. */
export function overlaps(a: Requirements, b: Requirements): boolean {
  const [fewer, more] = a.size < b.size ? [a, b] : [b, a]
  for (const set of fewer.values()) {
    const other = more.get(set.key)
    if (other !== undefined && !agree(set, other)) return false
  }
  return true
}

/** Whether some value, or the absence of the label, meets both. */
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

/** Keys of both on which they do not agree, in alphabetical order. */
export function conflictsOf(have: Requirements, want: Requirements): readonly Conflict[] {
  const found: Conflict[] = []
  for (const wanted of want.values()) {
    const offered = have.get(wanted.key)
    if (offered !== undefined && !agree(offered, wanted)) found.push({ have: offered, want: wanted })
  }
  return found.toSorted((a, b) => (a.want.key < b.want.key ? -1 : 1))
}

/** The first of `known` that contains the key, or ends with its name after the slash. */
function similarKey(key: string, known: Iterable<string>): string | undefined {
  const name = key.slice(key.indexOf('/') + 1)
  return [...known].toSorted().find((other) => other.includes(key) || (name !== '' && other.endsWith(name)))
}

/** The API form, keys in alphabetical order. */
export function requirementList(requirements: Requirements): readonly Requirement[] {
  return [...requirements.values()].toSorted((a, b) => (a.key < b.key ? -1 : 1)).flatMap(toRequirements)
}

/** The requirements of a pod on node labels, with and without the heaviest preference. */
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

/** The required rules, one entry per required node affinity term; a node must meet one of them. */
export function requiredAlternatives(spec: PodSpec): readonly Requirements[] {
  const selector = Object.entries(spec.nodeSelector ?? {}).map(([key, value]) => oneOf(key, value))
  const terms =
    spec.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? []
  if (terms.length === 0) return [requirementsOf(selector)]
  return terms.map((term) => requirementsOf([...selector, ...setsOf(term)]))
}

/** Matches no host name. */
const nowhere: ValueSet = { key: labels.hostname, complement: true, values: new Set(), gte: 1n, lte: 0n }

/** Value sets of a required term. In kube-scheduler an empty term matches no node. */
function setsOf({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm): ValueSet[] {
  return matchExpressions.length + matchFields.length === 0 ? [nowhere] : expressions(matchExpressions)
}

/** Parsed expressions: many shapes share one that lists thousands of values. */
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

/** Keys that only the simulation sets; users do not see them. */
const hidden: ReadonlySet<string> = new Set<string>([labels.hostname, labels.registered, labels.initialized])

/** Text for users: keys in order, joined by commas, without keys that only the simulation sets. */
export function renderRequirements(requirements: Requirements): string {
  return [...requirements.values()]
    .filter((set) => !hidden.has(set.key))
    .map(renderValueSet)
    .toSorted()
    .join(', ')
}
