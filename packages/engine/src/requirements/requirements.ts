/** Requirements on several label keys at once (scheduling.md 4). */
import type { NodeSelectorRequirement, PodSpec, Requirement } from '@tenon/api'
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

/** Allowed values by key; a key that is not there may take any value. */
export type Requirements = ReadonlyMap<string, ValueSet>

/** Why two sets of requirements cannot both hold. */
export type Incompatibility =
  | { readonly kind: 'unknownLabel'; readonly key: string }
  | { readonly kind: 'noOverlap'; readonly have: ValueSet; readonly want: ValueSet }

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
export function labelRequirements(labels: Readonly<Record<string, string>>): Requirements {
  return requirementsOf(Object.entries(labels).map(([key, value]) => oneOf(key, value)))
}

/** What both allow. */
export function merged(a: Requirements, b: Requirements): Requirements {
  if (b.size === 0) return a
  if (a.size === 0) return b
  return requirementsOf([...a.values(), ...b.values()])
}

/**
 * Whether something that offers `have` can satisfy `want`. Keys in `mayBeUndefined` need not be
 * offered; others must be, unless absence is what is wanted.
 */
export function incompatibility(
  have: Requirements,
  want: Requirements,
  mayBeUndefined: ReadonlySet<string>,
): Incompatibility | undefined {
  let unknown: string | undefined
  for (const [key, set] of want) {
    if (have.has(key) || mayBeUndefined.has(key) || allowsAbsence(set)) continue
    if (unknown === undefined || key < unknown) unknown = key
  }
  return unknown === undefined ? firstConflict(have, want) : { kind: 'unknownLabel', key: unknown }
}

/** The first key, in alphabetical order of `want`'s conflicts, on which the two do not overlap. */
export function firstConflict(have: Requirements, want: Requirements): Incompatibility | undefined {
  let found: Incompatibility | undefined
  let foundKey = ''
  for (const [key, wanted] of want) {
    const offered = have.get(key)
    if (offered === undefined || intersects(offered, wanted)) continue
    if (allowsAbsence(offered) && allowsAbsence(wanted)) continue
    if (found === undefined || key < foundKey) {
      found = { kind: 'noOverlap', have: offered, want: wanted }
      foundKey = key
    }
  }
  return found
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
  const required =
    affinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms[0]?.matchExpressions ?? []
  const heaviest = (affinity?.preferredDuringSchedulingIgnoredDuringExecution ?? []).toSorted(
    (a, b) => b.weight - a.weight,
  )[0]?.preference.matchExpressions
  const strict = requirementsOf([...selector, ...expressions(required)])
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
  return terms.map((term) => requirementsOf([...selector, ...expressions(term.matchExpressions ?? [])]))
}

function expressions(list: readonly NodeSelectorRequirement[]): ValueSet[] {
  return list.map((expression) => valueSet(expression))
}

/** One line for people: keys in order, comma-joined, the host name left out. */
export function renderRequirements(requirements: Requirements): string {
  return [...requirements.values()]
    .filter((set) => set.key !== 'kubernetes.io/hostname')
    .map(renderValueSet)
    .toSorted()
    .join(', ')
}
