/** Which nodes that do not exist yet a label selector will match (quotas.md 1). */
import { type LabelSelector, labels, type Requirement } from '@tenon/api'
import { oneOf, type ValueSet, valueSet } from './requirement.ts'
import {
  compatible,
  labelRequirements,
  merged,
  parseRequirements,
  type Requirements,
  requirementsOf,
} from './requirements.ts'

/** A label selector as value sets, all of which must be met. */
export interface NodeSelection {
  readonly terms: readonly ValueSet[]
  readonly all: Requirements
}

/** Whether nodes with some requirements match; `maybe`: it is not decided yet. */
export type Selects = 'never' | 'maybe' | 'always'

/** @returns undefined if no new node can match, as it names hosts that exist. */
export function nodeSelection({
  matchLabels = {},
  matchExpressions = [],
}: LabelSelector): NodeSelection | undefined {
  const terms = [
    ...Object.entries(matchLabels).map(([key, value]) => oneOf(key, value)),
    ...matchExpressions.map(valueSet),
  ]
  const isOfHosts = ({ key }: ValueSet) => key === labels.hostname
  // The name of a new node is that of no other.
  if (terms.some((term) => isOfHosts(term) && !term.complement)) return undefined
  const others = terms.filter((term) => !isOfHosts(term))
  return { terms: others, all: requirementsOf(others) }
}

/** @param wellKnown labels that a node may get although the requirements do not name them. */
export function selects(
  { terms, all }: NodeSelection,
  have: Requirements,
  wellKnown: ReadonlySet<string>,
): Selects {
  if (!compatible(have, all, wellKnown)) return 'never'
  const mayMiss = terms.some((term) => compatible(have, requirementsOf([opposite(term)]), wellKnown))
  return mayMiss ? 'maybe' : 'always'
}

/** What a node must meet so that it does not meet the term. */
export function opposite({ key, complement, values }: ValueSet): ValueSet {
  return { key, complement: !complement, values }
}

/**
 * Whether a node that does not exist yet may match a label selector.
 * @param requirements of its NodeClaim.
 * @param known labels that it will have.
 */
export function mayBeSelected(
  selector: LabelSelector,
  requirements: readonly Requirement[],
  known: Readonly<Record<string, string>>,
  wellKnown: ReadonlySet<string>,
): boolean {
  const selection = nodeSelection(selector)
  const have = merged(parseRequirements(requirements), labelRequirements(known))
  return selection !== undefined && selects(selection, have, wellKnown) !== 'never'
}
