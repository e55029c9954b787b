/** Whether the labels and requirements of a template can hold together on one node. */
import { capacityTypes, labels, nodeClassLabel, type NodePool, type Requirement } from '@tenon/api'
import {
  allowsAbsence,
  anyValue,
  has,
  oneOf,
  requirementsOf,
  type ValueSet,
  valueSet,
} from '@tenon/engine/objects'

const at = 'spec.template.spec.requirements'

/** What makes a NodePool unusable though its schema allows it. */
export interface PoolProblem {
  /** Path in the NodePool; keys of maps are quoted in brackets. */
  readonly field: string
  /** What is wrong, and what would be right. */
  readonly message: string
  /** What to write instead, where the message does not say so. */
  readonly fix?: string
}

/** What one field of a template says about a label. */
interface Statement {
  readonly field: string
  /** As users read it, without the key. */
  readonly text: string
  readonly set: ValueSet
}

/** Labels that take one of a few values. */
export const closedValues: ReadonlyMap<string, readonly string[]> = new Map([
  [labels.capacityType, [capacityTypes.onDemand, capacityTypes.spot, capacityTypes.reserved]],
])
/** Every node has these. */
const alwaysPresent: ReadonlySet<string> = new Set([
  labels.zone,
  labels.instanceType,
  labels.arch,
  labels.os,
  labels.capacityType,
])
/** Their values are no integers, so bounds admit none of them. */
const neverIntegers: ReadonlySet<string> = new Set([labels.arch, labels.os])
const maxListed = 5

/**
 * Labels of which a template admits no value, or fewer values than minValues wants. Nodes of such a
 * pool cannot be launched, or are drifted from the start. One problem a label.
 * @param unreadable indexes of requirements that are malformed; they are left out.
 * @param labelAliases the keys that requirements go by, by other keys of the provider for them.
 */
export function contradictions(
  pool: NodePool,
  unreadable: ReadonlySet<number>,
  labelAliases: Readonly<Record<string, string>> = {},
): readonly PoolProblem[] {
  const statements = statementsOf(pool, unreadable, new Map(Object.entries(labelAliases)))
  const byKey = Map.groupBy(statements, ({ set }) => set.key)
  return [...byKey.values()].flatMap((each) => {
    const problem = contradictionOf(each) ?? shortageOf(each)
    return problem === undefined ? [] : [problem]
  })
}

function statementsOf(
  { spec: { template } }: NodePool,
  unreadable: ReadonlySet<number>,
  aliases: ReadonlyMap<string, string>,
): readonly Statement[] {
  const canonical = (key: string): string => aliases.get(key) ?? key
  const { nodeClassRef: ref, requirements } = template.spec
  const ofClass: Statement = {
    field: 'spec.template.spec.nodeClassRef.name',
    text: `the name ${ref.name} of the node class`,
    set: oneOf(nodeClassLabel(ref), ref.name),
  }
  const labelled = Object.entries(template.metadata?.labels ?? {}).map(
    ([key, value]): Statement => ({
      field: `spec.template.metadata.labels["${key}"]`,
      text: `the value "${value}" of the template's label`,
      set: oneOf(canonical(key), value),
    }),
  )
  const required = requirements.flatMap((requirement, i): readonly Statement[] => {
    if (unreadable.has(i)) return []
    const set = boundedSet({ ...requirement, key: canonical(requirement.key) })
    return [{ field: `${at}[${i}]`, text: requirementText(requirement), set }]
  })
  return [ofClass, ...labelled, ...required]
}

/** A bound past the ends of 64 bits is met by no value; the engine reads it as the label's absence. */
function boundedSet(requirement: Requirement): ValueSet {
  const set = valueSet(requirement)
  const isBound = requirement.values?.length === 1 && !['In', 'NotIn'].includes(requirement.operator)
  return isBound && !set.complement ? { ...set, complement: true, gte: 1n, lte: 0n } : set
}

function requirementText({ operator, values = [] }: Requirement): string {
  const more = values.length - maxListed
  const listed = values.slice(0, maxListed).join(', ') + (more > 0 ? ` and ${more} more` : '')
  return values.length === 0 ? operator : `${operator} [${listed}]`
}

/** The first statement that leaves nothing of what those before it admit. */
function contradictionOf(statements: readonly Statement[]): PoolProblem | undefined {
  for (const [i, statement] of statements.entries()) {
    const before = statements.slice(0, i)
    if (isPossible([...before, statement])) continue
    const { field, text, set } = statement
    if (!isPossible([statement]))
      return { field, message: `label ${set.key}: no node satisfies ${text}`, fix: impossibleFix(set) }
    const other = before.find((each) => !isPossible([each, statement]))
    const said = (other === undefined ? before : [other]).map((each) => `${each.text} (${each.field})`)
    const message = `label ${set.key}: no node satisfies both ${text} and ${said.join(' and ')}`
    return { field, message, fix: 'change or remove one of them' }
  }
  return undefined
}

function impossibleFix({ key }: ValueSet): string {
  if (closedValues.has(key)) return `known values are ${closedValues.get(key)?.join(', ')}`
  return alwaysPresent.has(key)
    ? 'every node has this label; name its values with In or NotIn'
    : 'change or remove it'
}

/** Whether a node can satisfy all of these, by a value of the label or by going without it. */
function isPossible(statements: readonly Statement[]): boolean {
  const [set] = requirementsOf(statements.map((each) => each.set)).values()
  if (set === undefined) return true
  if (allowsAbsence(set) && !alwaysPresent.has(set.key)) return true
  const closed = closedValues.get(set.key)
  if (closed !== undefined) return closed.some((value) => has(set, value))
  if (neverIntegers.has(set.key) && isBounded(set)) return false
  return anyValue(set) !== undefined
}

const isBounded = ({ gte, lte }: ValueSet): boolean => gte !== undefined || lte !== undefined

/** minValues that is more than all statements together admit. */
function shortageOf(statements: readonly Statement[]): PoolProblem | undefined {
  const [set] = requirementsOf(statements.map((each) => each.set)).values()
  const stated = statements.find((each) => each.set.minValues === set?.minValues)
  if (set?.minValues === undefined || stated === undefined) return undefined
  const admitted = countOf(set)
  if (admitted === undefined || admitted >= BigInt(set.minValues)) return undefined
  return {
    field: `${stated.field}.minValues`,
    message: `label ${set.key}: minValues ${set.minValues} cannot be met, as labels and requirements admit ${admitted} of its values`,
    fix: admitted === 0n ? 'remove minValues' : `write ${admitted} at most, or admit more values`,
  }
}

/** How many values of the label the set admits; undefined when nothing bounds them. */
function countOf(set: ValueSet): bigint | undefined {
  const closed = closedValues.get(set.key)
  if (closed !== undefined) return BigInt(closed.filter((value) => has(set, value)).length)
  if (!set.complement) return BigInt(set.values.size)
  if (set.lte === undefined) return undefined
  const least = set.gte === undefined || set.gte < 0n ? 0n : set.gte
  const excluded = [...set.values].filter((value) => BigInt(value).toString() === value).length
  return set.lte - least + 1n - BigInt(excluded)
}
