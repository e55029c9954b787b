/** Why something could not be placed, as data; rendered to words only when someone asks. */
import { formatResource, type Resources, type Taint, taintText } from '@tenon/api'
import { renderValueSet } from '../requirements/requirement.ts'
import { type Incompatibility, type Requirements, renderRequirements } from '../requirements/requirements.ts'

/** What an instance type must meet, beside being listed. */
export interface FilterOutcome {
  /** Some type met the requirements, held the resources, had an available offering. */
  readonly requirementsMet: boolean
  readonly resourcesMet: boolean
  readonly offeringMet: boolean
  /** Some type met both at once. */
  readonly requirementsAndResources: boolean
  readonly requirementsAndOffering: boolean
  readonly resourcesAndOffering: boolean
}

/** One reason of one template for one pod (scheduling.md 12.3). */
export type TemplateReason =
  | { readonly kind: 'untoleratedTaints'; readonly taints: readonly Taint[] }
  | { readonly kind: 'incompatibleRequirements'; readonly conflict: Incompatibility }
  | {
      readonly kind: 'noInstanceType'
      readonly outcome: FilterOutcome
      readonly requirements: Requirements
      readonly requests: Resources
    }
  | { readonly kind: 'hostPortClash' }
  | {
      readonly kind: 'topology'
      readonly rule: 'spread' | 'affinity' | 'antiAffinity'
      readonly key: string
      /** Pods counted in each known domain when the pass ended. */
      readonly counts: ReadonlyMap<string, number>
    }
  | { readonly kind: 'minValues'; readonly missing: ReadonlyMap<string, number> }
  | { readonly kind: 'nodeLimit' }
  | { readonly kind: 'limits' }

/** Why a pod got no place. */
export type PodReason =
  | { readonly kind: 'noPools' }
  | { readonly kind: 'noTypesInPools' }
  | {
      readonly kind: 'noTemplate'
      readonly templates: readonly { readonly nodePool: string; readonly reason: TemplateReason }[]
    }
  | { readonly kind: 'truncationBrokeMinValues'; readonly nodePool: string }

/** The sentence for a pod's event. */
export function renderPodReason(reason: PodReason): string {
  switch (reason.kind) {
    case 'noPools':
      return 'no NodePool is ready to launch nodes'
    case 'noTypesInPools':
      return "the NodePools' requirements leave no usable instance type"
    case 'truncationBrokeMinValues':
      return `NodePool ${reason.nodePool}: too few instance types are left to keep minValues`
    case 'noTemplate':
      return reason.templates
        .map(({ nodePool, reason: why }) => `NodePool ${nodePool}: ${renderTemplateReason(why)}`)
        .join('; ')
  }
}

/** The clause that says why one NodePool's template cannot take a pod. */
function renderTemplateReason(reason: TemplateReason): string {
  switch (reason.kind) {
    case 'untoleratedTaints':
      return `the pod does not tolerate ${reason.taints.map(taintText).join(', ')}`
    case 'incompatibleRequirements':
      return renderIncompatibility(reason.conflict)
    case 'noInstanceType':
      return `no instance type ${renderOutcome(reason.outcome)} (requirements: ${renderRequirements(
        reason.requirements,
      )}; requests: ${renderResources(reason.requests)})`
    case 'hostPortClash':
      return 'a host port of the pod is taken by a daemon pod on every instance type'
    case 'topology':
      return `${topologyWords[reason.rule]} over ${reason.key} cannot be met (${renderCounts(reason.counts)})`
    case 'minValues':
      return `minValues not met for ${[...reason.missing].map(([key, found]) => `${key} (${found} left)`).join(', ')}`
    case 'nodeLimit':
      return 'its limit on the number of nodes is used up'
    case 'limits':
      return 'every instance type would exceed its limits'
  }
}

const topologyWords = {
  spread: 'its topology spread constraint',
  affinity: 'its pod affinity',
  antiAffinity: 'a pod anti-affinity',
} as const

const shownDomains = 25

function renderCounts(counts: ReadonlyMap<string, number>): string {
  const all = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const shown = all.slice(0, shownDomains).map(([domain, count]) => `${domain}: ${count}`)
  const rest = all.length - shown.length
  return all.length === 0
    ? 'no domain is known'
    : `pods by domain: ${shown.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

function renderIncompatibility(conflict: Incompatibility): string {
  if (conflict.kind === 'unknownLabel') {
    return `label ${conflict.key} is not known to it; add it to the NodePool's labels or requirements`
  }
  return `it has ${renderValueSet(conflict.have)} but the pod needs ${renderValueSet(conflict.want)}`
}

function renderOutcome(outcome: FilterOutcome): string {
  const unmet: string[] = []
  if (!outcome.requirementsMet) unmet.push('met the requirements')
  if (!outcome.resourcesMet) unmet.push('has enough resources')
  if (!outcome.offeringMet) unmet.push('has an available offering')
  if (unmet.length > 0) return unmet.join(' or ')
  if (outcome.requirementsAndResources)
    return 'met the requirements and has the resources in an available offering'
  if (outcome.requirementsAndOffering)
    return 'with the requirements and an available offering has enough resources'
  if (outcome.resourcesAndOffering) return 'with the resources and an available offering met the requirements'
  return 'met the requirements, the resources and the offering together'
}

function renderResources(resources: Resources): string {
  return Object.entries(resources)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, amount]) => `${name}=${formatResource(name, amount)}`)
    .join(', ')
}
