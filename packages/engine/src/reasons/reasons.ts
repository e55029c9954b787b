/** Why something could not be placed, as data. The text is only rendered when it is read. */
import {
  featuresAnnotation,
  formatResource,
  labels,
  type Resources,
  type Taint,
  taintText,
  type Unavailability,
} from '@tenon/api'
import { type DeviceRefusal, deviceWords } from './device-reasons.ts'
import { renderValueSet, type ValueSet } from '../requirements/requirement.ts'
import { type Incompatibility, type Requirements, renderRequirements } from '../requirements/requirements.ts'

/** Which conditions some instance type met. No type met all of them. */
export interface FilterOutcome {
  /** Some type met the requirements, had the resources, had an available offering. */
  readonly requirementsMet: boolean
  readonly resourcesMet: boolean
  readonly offeringMet: boolean
  /** Some type met both at once. */
  readonly requirementsAndResources: boolean
  readonly requirementsAndOffering: boolean
  readonly resourcesAndOffering: boolean
}

/** Why one NodePool cannot take a pod (scheduling.md 12.3). */
export type TemplateReason =
  | { readonly kind: 'untoleratedTaints'; readonly taints: readonly Taint[] }
  /** Kubelets of the NodePool do not declare these features, or nothing is known of them. */
  | { readonly kind: 'undeclaredFeatures'; readonly features: readonly string[] }
  | { readonly kind: 'incompatibleRequirements'; readonly conflict: Incompatibility }
  | { readonly kind: 'incompatibleVolumes'; readonly conflict: Incompatibility }
  | {
      readonly kind: 'noInstanceType'
      readonly outcome: FilterOutcome
      readonly requirements: Requirements
      /** Requests of the claim's pods, and of the smallest set of daemon pods of any type. */
      readonly requests: Resources
      /** The same with the largest set of daemon pods; set only where types differ. */
      readonly largestRequests?: Resources
    }
  /** Pods of these DaemonSets (`namespace/name`) use a host port of the pod. */
  | {
      readonly kind: 'hostPortClash'
      readonly taken: readonly {
        readonly daemon: string
        readonly port: number
        readonly protocol: string
      }[]
    }
  /** The pod has more volumes of a CSI driver than a node of any instance type can attach. */
  | {
      readonly kind: 'attachLimit'
      readonly driver: string
      readonly volumes: number
      readonly limit: number
    }
  /** The pod has volumes of a CSI driver that new nodes of all instance types lack. */
  | { readonly kind: 'driverMissing'; readonly driver: string }
  | {
      readonly kind: 'topology'
      readonly rule: 'spread' | 'affinity' | 'antiAffinity'
      readonly key: string
      /** Pods in each known domain at the end of the pass. */
      readonly counts: ReadonlyMap<string, number>
      /** Domains that the pod allows, and that the node may have. */
      readonly podDomains?: ValueSet
      readonly nodeDomains?: ValueSet
    }
  /** By key: the number of values that are left. */
  | { readonly kind: 'minValues'; readonly missing: ReadonlyMap<string, number> }
  | { readonly kind: 'nodeLimit' }
  /** All types exceed the limits; `isOfSuiting`: all types that would hold the pod do. */
  | { readonly kind: 'limits'; readonly isOfSuiting?: true }
  /** Every type that would do exceeds what is left of a quota (quotas.md 1). */
  | { readonly kind: 'quota'; readonly quota: string; readonly resource: string; readonly left: number }
  /** These offerings would hold the pod but are unavailable. */
  | { readonly kind: 'unavailable'; readonly offerings: readonly UnavailableOffering[] }

/** A suitable offering that is unavailable. */
export interface UnavailableOffering {
  readonly instanceType: string
  readonly zone: string
  readonly capacityType: string
  /** Absent if the provider does not say why. */
  readonly unavailability?: Unavailability
}

/** The NodePools that allow an instance type with an extended resource. */
export interface DeviceOffer {
  readonly resource: string
  readonly nodePools: readonly string[]
}

/** Why a pod is unschedulable. */
export type PodReason =
  | { readonly kind: 'noPools' }
  | { readonly kind: 'noTypesInPools' }
  | {
      readonly kind: 'noTemplate'
      readonly templates: readonly { readonly nodePool: string; readonly reason: TemplateReason }[]
      /** Only of a pod that requests extended resources. */
      readonly devices?: readonly DeviceOffer[]
    }
  | {
      readonly kind: 'truncationBrokeMinValues'
      readonly nodePool: string
      readonly missing?: ReadonlyMap<string, number>
    }
  /** The pod waits for the next pass: all reservations are in use, or its node would lose its reservation. */
  | { readonly kind: 'reservationDeferred'; readonly variant: 'noneLeft' | 'wouldLose' }
  /** A disruption would depend on a node that may never become ready. */
  | { readonly kind: 'uninitializedNode'; readonly node: string }
  | { readonly kind: 'resourceClaims' }
  /** No existing or new node has devices for this ResourceClaim (`namespace/name`). */
  | { readonly kind: 'devices'; readonly claim: string; readonly because: DeviceRefusal['because'] }
  /** No existing or new node has, or has devices for, these extended resources that have a DeviceClass. */
  | {
      readonly kind: 'extendedResources'
      readonly resources: readonly string[]
      readonly because: DeviceRefusal['because']
    }
  /** The claim (`namespace/name`) is ReadWriteOncePod, and another pod of this pass uses it. */
  | { readonly kind: 'exclusiveClaim'; readonly claim: string }
  /** `problem` names the field and the problem. */
  | { readonly kind: 'malformed'; readonly problem: string }
  /** The group has fewer members than its minimum. */
  | {
      readonly kind: 'podGroupShort'
      readonly group: string
      /** Pending members, and members that have a node. */
      readonly members: number
      readonly bound: number
      readonly minCount: number
    }
  /**
   * The group does not fit as a whole; `placed`: the most pending members that fit; `because`: why the next
   * one does not.
   */
  | {
      readonly kind: 'podGroup'
      readonly group: string
      readonly placed: number
      readonly bound: number
      readonly minCount: number
      /** The domain in which the most members fit. */
      readonly key?: string
      readonly domain?: string
      /** UID of the first member that does not fit. */
      readonly member?: string
      readonly because: PodReason
    }
  /** No node has the topology label of the group, and no NodePool sets it. */
  | { readonly kind: 'podGroupTopology'; readonly group: string; readonly key: string }
  /** A bug: the explanation threw. */
  | { readonly kind: 'unexplained' }
  /** A bug: every decision with this pod throws `problem`. */
  | { readonly kind: 'undecidable'; readonly problem: string }

/** The message for the pod's event; clauses of several NodePools are joined by `; `. */
export function renderPodReason(reason: PodReason): string {
  switch (reason.kind) {
    case 'noPools':
      return 'no NodePool is ready to launch nodes; create one, or see the Ready condition of those that exist'
    case 'noTypesInPools':
      return (
        "the NodePools' requirements leave no usable instance type; " +
        'widen spec.template.spec.requirements of a NodePool'
      )
    case 'noTemplate':
      return [
        ...(reason.devices ?? []).map(renderDeviceOffer),
        ...reason.templates.map(
          ({ nodePool, reason: why }) => `NodePool ${nodePool}: ${renderTemplateReason(why, nodePool)}`,
        ),
      ].join('; ')
    case 'truncationBrokeMinValues':
      return (
        `NodePool ${reason.nodePool}: too few of the cheapest instance types are left to keep minValues` +
        `${reason.missing === undefined ? '' : ` of ${renderMissing(reason.missing)}`}; ` +
        'lower minValues in spec.template.spec.requirements'
      )
    case 'reservationDeferred':
      return `${deferredWords[reason.variant]}; the pod is tried again in the next pass`
    case 'uninitializedNode':
      return `the pod would rely on node ${reason.node}, which is not initialized; wait until it is`
    case 'resourceClaims':
      return (
        'the pod uses ResourceClaims (spec.resourceClaims), for which no node can be launched: that needs ' +
        'Kubernetes 1.34 or newer, and --ignore-dra-requests not to be set; ' +
        'remove them, or provide a node that serves them'
      )
    case 'devices':
      return `ResourceClaim ${reason.claim}: ${deviceWords(reason.because)}`
    case 'extendedResources':
      return `${reason.resources.join(', ')}, which devices serve: ${deviceWords(reason.because)}`
    case 'exclusiveClaim':
      return (
        `PersistentVolumeClaim ${reason.claim} has access mode ReadWriteOncePod and goes to another pod; ` +
        'give the pod a claim of its own, or use ReadWriteOnce'
      )
    case 'malformed':
      return `the pod is malformed: ${reason.problem}`
    case 'podGroupShort':
      return (
        `${reason.group} runs with at least ${reason.minCount} pods and has ${reason.members + reason.bound} ` +
        '(those with scheduling gates, terminating and finished ones apart); it waits for the others'
      )
    case 'podGroup':
      return (
        `${reason.group} runs with at least ${reason.minCount} pods, and there is room for ` +
        `${reason.placed + reason.bound}${reason.domain === undefined ? '' : ` in ${reason.key} ${reason.domain}`}; ` +
        `for the next one: ${renderPodReason(reason.because)}`
      )
    case 'podGroupTopology':
      return (
        `the pods of ${reason.group} must share a value of the node label ${reason.key}, which no node has and no ` +
        'NodePool gives; add it to spec.template.metadata.labels or requirements of a NodePool'
      )
    case 'unexplained':
      return 'the pod fits no NodePool; determining the reason failed, see the log of the controller'
    case 'undecidable':
      return (
        `every decision with this pod fails (${reason.problem}), so it is set aside and tried again later; ` +
        'other pods are not affected. This is a bug: please report it with the log of the controller'
      )
  }
}

/** Whether any allowed type has the device, as a clause. */
export function renderDeviceOffer({ resource, nodePools }: DeviceOffer): string {
  return nodePools.length === 0
    ? `no instance type that a NodePool allows has ${resource}`
    : `instance types with ${resource} are allowed by NodePool ${listText(nodePools.toSorted(), shownOfferings)}`
}

const deferredWords = {
  noneLeft: 'all suitable reserved capacity is used by other pods of this pass',
  wouldLose: 'with the pod, the node it suits would lose the reserved capacity that it holds',
} as const

/** The clause for one NodePool. */
export function renderTemplateReason(reason: TemplateReason, nodePool: string): string {
  switch (reason.kind) {
    case 'untoleratedTaints':
      return `the pod does not tolerate ${reason.taints.map(taintText).join(', ')}; add to its spec.tolerations`
    case 'undeclaredFeatures':
      return (
        `its nodes are not known to declare ${reason.features.join(', ')} (status.declaredFeatures), which the pod ` +
        `needs; use kubelets that do, or say so in annotation ${featuresAnnotation} of the node class`
      )
    case 'incompatibleRequirements':
      return renderIncompatibility(reason.conflict, 'the pod needs', "the pod's node selector or affinity")
    case 'incompatibleVolumes':
      return renderIncompatibility(
        reason.conflict,
        "the pod's volumes need",
        'the volumes (spec.volumes of the pod)',
      )
    case 'noInstanceType':
      return renderNoInstanceType(reason)
    case 'hostPortClash':
      return (
        'a host port of the pod is taken by a daemon pod on every instance type ' +
        `(${reason.taken.map(portText).join(', ')}); change hostPort in spec.containers[].ports`
      )
    case 'attachLimit':
      return (
        `the pod has ${reason.volumes} volumes of CSI driver ${reason.driver}, and nodes attach at most ` +
        `${reason.limit} (CSINode, spec.drivers[].allocatable.count); use fewer volumes in one pod`
      )
    case 'driverMissing':
      return (
        `nodes do not run CSI driver ${reason.driver}, which the pod's volumes need ` +
        '(CSIDriver, spec.preventPodSchedulingIfMissing); let its node plugin run on nodes of the NodePool'
      )
    case 'topology':
      return renderTopology(reason)
    case 'minValues':
      return (
        `minValues not met for ${renderMissing(reason.missing)}; ` +
        'lower minValues or allow more values in spec.template.spec.requirements'
      )
    case 'nodeLimit':
      return 'its limit on the number of nodes is used up; raise spec.limits.nodes'
    case 'limits':
      return `every instance type${reason.isOfSuiting === true ? ' that holds the pod' : ''} would exceed the limits of NodePool ${nodePool}; raise its spec.limits`
    case 'quota': {
      const { left, quota, resource } = reason
      return (
        `CapacityQuota ${quota} has ${formatResource(resource, left)} of ${resource} left, which is too little for ` +
        'every instance type that would do; raise its spec.limits.resources'
      )
    }
    case 'unavailable':
      return (
        `every offering that suits the pod is unavailable now (${renderShortage(reason.offerings)}); ` +
        'it is retried automatically'
      )
  }
}

const shownOfferings = 3
const shownCauses = 4

/** Offerings that are unavailable for the same reason are one clause, with the time of the next attempt. */
export function renderShortage(offerings: readonly UnavailableOffering[]): string {
  const byCause = new Map<string, string[]>()
  for (const { instanceType, zone, capacityType, unavailability } of offerings) {
    const cause = causeText(unavailability)
    const names = byCause.get(cause) ?? []
    names.push(`${instanceType}/${zone}/${capacityType}`)
    byCause.set(cause, names)
  }
  const causes = [...byCause].map(
    ([cause, names]) => `${listText(names.toSorted(), shownOfferings)}: ${cause}`,
  )
  const rest = causes.length - shownCauses
  return `${causes.toSorted().slice(0, shownCauses).join('; ')}${rest > 0 ? `; and ${rest} more` : ''}`
}

function causeText(unavailability: Unavailability | undefined): string {
  if (unavailability === undefined) return 'the provider does not sell it now'
  const { because, untilMs } = unavailability
  if (untilMs === undefined) return because
  return `${because}, next try at ${new Date(untilMs).toISOString().slice(0, 19)}Z`
}

function listText(names: readonly string[], shown: number): string {
  const rest = names.length - shown
  return `${names.slice(0, shown).join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

const portText = ({ daemon, port, protocol }: { daemon: string; port: number; protocol: string }): string =>
  `${protocol} ${port} by DaemonSet ${daemon}`

function renderMissing(missing: ReadonlyMap<string, number>): string {
  const keys = [...missing].toSorted(([a], [b]) => (a < b ? -1 : 1))
  return keys.map(([key, found]) => `${key} (${found} left)`).join(', ')
}

const topologyWords = {
  spread: { rule: 'its topology spread constraint', field: 'spec.topologySpreadConstraints' },
  affinity: { rule: 'its pod affinity', field: 'spec.affinity.podAffinity' },
  antiAffinity: { rule: 'a pod anti-affinity', field: 'spec.affinity.podAntiAffinity' },
} as const

function renderTopology(reason: TemplateReason & { readonly kind: 'topology' }): string {
  const { rule, field } = topologyWords[reason.rule]
  const facts = [renderCounts(reason.counts)]
  if (reason.podDomains) facts.push(`the pod may use ${renderValueSet(reason.podDomains)}`)
  if (reason.nodeDomains) facts.push(`the node ${renderValueSet(reason.nodeDomains)}`)
  return (
    `${rule} over ${reason.key} cannot be met (${facts.join('; ')}); ` +
    `loosen ${field} or allow more domains in the NodePool`
  )
}

const shownDomains = 25

function renderCounts(counts: ReadonlyMap<string, number>): string {
  const all = [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))
  const shown = all.slice(0, shownDomains).map(([domain, count]) => `${domain}: ${count}`)
  const rest = all.length - shown.length
  return all.length === 0
    ? 'no domain is known'
    : `pods by domain: ${shown.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
}

function renderIncompatibility(conflict: Incompatibility, needs: string, wish: string): string {
  if (conflict.kind === 'unknownLabel') {
    const meant = conflict.hint === undefined ? '' : ` (did you mean ${conflict.hint}?)`
    if (conflict.key === labels.hostname) return `${needs} a host that exists, and a new node is another one`
    return `label ${conflict.key} is not known to it${meant}; add it to the NodePool's labels or requirements`
  }
  const clashes = conflict.conflicts.map(
    ({ have, want }) => `it has ${renderValueSet(have)} but ${needs} ${renderValueSet(want)}`,
  )
  return `${clashes.join(', ')}; change spec.template.spec.requirements or ${wish}`
}

function renderNoInstanceType(reason: TemplateReason & { readonly kind: 'noInstanceType' }): string {
  const { outcome, requirements, requests, largestRequests } = reason
  const most =
    largestRequests === undefined
      ? ''
      : `, up to ${renderResources(largestRequests)} with the daemon pods of some types`
  const [what, fix] = outcomeWords(outcome)
  const hint = isMegaForMilli(reason) ? ' (a million cores or more are asked for: is M written for m?)' : ''
  return (
    `no instance type ${what}${hint} (requirements: ${renderRequirements(requirements)}; ` +
    `requests: ${renderResources(requests)}${most}); ${fix}`
  )
}

const millionCoresMillis = 1e9

function isMegaForMilli({
  outcome,
  requests,
}: TemplateReason & { readonly kind: 'noInstanceType' }): boolean {
  return (
    outcome.requirementsMet &&
    outcome.offeringMet &&
    !outcome.resourcesMet &&
    (requests['cpu'] ?? 0) >= millionCoresMillis
  )
}

const fixes = {
  requirements: 'loosen what the pod or spec.template.spec.requirements demand',
  resources: "lower the pod's requests or allow larger instance types",
  offering: 'allow more zones and capacity types, or wait for capacity',
} as const

/** What no type meets, and the fix. */
function outcomeWords(outcome: FilterOutcome): readonly [what: string, fix: string] {
  const unmet: (readonly [string, string])[] = []
  if (!outcome.requirementsMet) unmet.push(['meets the requirements', fixes.requirements])
  if (!outcome.resourcesMet) unmet.push(['has enough resources', fixes.resources])
  if (!outcome.offeringMet) unmet.push(['has an available offering', fixes.offering])
  if (unmet[0] !== undefined) return [unmet.map(([what]) => what).join(' or '), unmet[0][1]]
  if (outcome.requirementsAndResources)
    return ['that meets the requirements and has enough resources has an available offering', fixes.offering]
  if (outcome.requirementsAndOffering)
    return ['that meets the requirements and has an available offering has enough resources', fixes.resources]
  if (outcome.resourcesAndOffering)
    return ['that has enough resources and an available offering meets the requirements', fixes.requirements]
  return [
    'meets the requirements, has enough resources and an available offering at once',
    fixes.requirements,
  ]
}

function renderResources(resources: Resources): string {
  return Object.entries(resources)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, amount]) => `${name}=${formatResource(name, amount)}`)
    .join(', ')
}
