/** Checks of a NodeOverlay that its schema cannot do (api.md 5.4). */
import { isKnownPrice, isQuantity, mostPricePerHour, type NodeOverlay } from '@tenon/api'
import { canonicalKey, type EligibilityPolicy } from '../eligibility/lookups.ts'
import { requirementProblems } from '../eligibility/node-selection.ts'
import { renderSelectionProblem, type SelectionProblem } from '../eligibility/problems.ts'
import type { OfferedPool } from './matching.ts'

/** Why an overlay is invalid; `field` is a path in the overlay. */
export type OverlayProblem =
  | SelectionProblem
  | { readonly kind: 'notInWithoutValues'; readonly field: string; readonly key: string }
  | { readonly kind: 'instanceResource'; readonly field: string }
  | {
      readonly kind: 'unreadable'
      readonly field: string
      readonly value: string
      readonly expected: string
    }
  | {
      readonly kind: 'noCurrency'
      readonly field: string
      readonly value: string
      readonly nodePool: string
      readonly priceUnit: string
    }

/** Resources that overlays may not set, as only the provider knows them. */
const instanceResources: ReadonlySet<string> = new Set(['cpu', 'memory', 'ephemeral-storage', 'pods'])

/** All problems of the overlay; empty if it is valid. */
export function overlayProblems(overlay: NodeOverlay, policy: EligibilityPolicy): readonly OverlayProblem[] {
  const { requirements, price, priceAdjustment, capacity } = overlay.spec
  const problems: OverlayProblem[] = []
  for (const [i, requirement] of requirements.entries()) {
    const field = `spec.requirements[${i}]`
    problems.push(...requirementProblems(requirement, field, policy))
    if (requirement.operator === 'NotIn' && (requirement.values ?? []).length === 0)
      problems.push({ kind: 'notInWithoutValues', field, key: canonicalKey(requirement.key, policy) })
  }
  const check = (field: string, value: string | undefined, isReadable: boolean, expected: string) => {
    if (value !== undefined && !isReadable) problems.push({ kind: 'unreadable', field, value, expected })
  }
  const isPrice = /^\d+(\.\d+)?$/.test(price ?? '') && isKnownPrice(Number(price))
  check('spec.price', price, isPrice, `a number such as 0.25, at most ${mostPricePerHour}`)
  check(
    'spec.priceAdjustment',
    priceAdjustment,
    /^[+-](\d+(\.\d+)?|\.\d+)%?$/.test(priceAdjustment ?? ''),
    'a signed number such as -0.1, or a percentage such as +10%',
  )
  for (const [name, amount] of Object.entries(capacity ?? {})) {
    const field = `spec.capacity["${name}"]`
    if (instanceResources.has(name)) problems.push({ kind: 'instanceResource', field })
    check(field, amount, isQuantity(amount), 'a quantity such as 2 or 4Gi')
  }
  return problems
}

/**
 * Problems of a price in pools whose prices are not in a currency: an amount has no meaning there, but a
 * percentage does.
 */
export function currencyProblems(
  { spec }: NodeOverlay,
  pools: readonly Pick<OfferedPool, 'nodePool' | 'priceUnit'>[],
): readonly OverlayProblem[] {
  const [field, value] =
    spec.price === undefined
      ? (['spec.priceAdjustment', spec.priceAdjustment] as const)
      : (['spec.price', spec.price] as const)
  if (value === undefined || value.endsWith('%')) return []
  for (const { nodePool, priceUnit } of pools)
    if (priceUnit !== undefined && !/^[A-Z]{3}$/.test(priceUnit))
      return [{ kind: 'noCurrency', field, value, nodePool: nodePool.metadata.name, priceUnit }]
  return []
}

/** One sentence that names every problem, its field and the fix. */
export function renderOverlayProblems(problems: readonly OverlayProblem[]): string {
  return problems.map((problem) => `${problem.field}: ${words(problem)}`).join('; ')
}

function words(problem: OverlayProblem): string {
  switch (problem.kind) {
    case 'notInWithoutValues':
      return `operator NotIn for label ${problem.key} needs at least one value`
    case 'instanceResource':
      return 'the provider knows how much of it an instance has; remove it'
    case 'unreadable':
      return `"${problem.value}" is not ${problem.expected}`
    case 'noCurrency':
      return `"${problem.value}" is an amount, and the prices in NodePool ${problem.nodePool} have no currency (${problem.priceUnit}); use a percentage in spec.priceAdjustment, or give the provider prices in a currency`
    case 'restrictedLabel':
      return `label ${problem.key} is reserved; use another one`
    case 'matchFields':
    case 'invalidKey':
    case 'invalidValue':
    case 'noValues':
    case 'notAnInteger':
    case 'unknownValues':
      return renderSelectionProblem(problem)
  }
}
