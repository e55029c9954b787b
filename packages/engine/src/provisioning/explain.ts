/** Why no template takes a pod; asked once per shape that was left over (scheduling.md 12.3). */
import type { PodReason, TemplateReason } from '../reasons/reasons.ts'
import { incompatibility } from '../requirements/requirements.ts'
import { type ClaimClass, holdsMore } from './claim-class.ts'
import type { CompiledProblem } from './compiled-problem.ts'
import { meets, offeringsWithin } from './instance-rows.ts'
import type { PodShape } from './pod-shape.ts'
import { type PoolBudget, portsFree, takenPorts, type Template, type TypeRow } from './pool-template.ts'
import { addTo, type Amounts, amountsFit } from './resource-space.ts'
import { untolerated } from './taints.ts'
import type { PodTopology } from './topology/pod-topology.ts'

export interface ExplainContext {
  readonly compiled: CompiledProblem
  readonly topology: PodTopology
  readonly budgetOf: (template: Template) => PoolBudget
}

/** The reasons of all templates for a shape after its last relaxation. */
export function explain(
  shape: PodShape,
  templates: readonly Template[],
  newHost: number,
  context: ExplainContext,
): PodReason {
  return {
    kind: 'noTemplate',
    templates: templates.map((template) => ({
      nodePool: template.name,
      reason: reasonOf(shape, template, newHost, context),
    })),
  }
}

function reasonOf(
  shape: PodShape,
  template: Template,
  newHost: number,
  context: ExplainContext,
): TemplateReason {
  const { topology } = context
  const { classes } = context.compiled
  const { policy } = context.compiled.problem
  const budget = context.budgetOf(template)
  if (budget.nodesExhausted) return { kind: 'nodeLimit' }
  if (budget.affordable().length === 0) return { kind: 'limits' }
  const taints = untolerated(template.taints, shape.tolerations)
  if (taints.length > 0) return { kind: 'untoleratedTaints', taints }
  const opened = classes.opened(template, budget.affordable())
  const clash = conflict(shape, opened, context)
  if (clash !== undefined) return clash
  const states = statesWithin(shape, opened, context)
  if (states.length === 0) return volumeConflict(shape, opened, context)
  topology.expectOnClaim(newHost, template.index)
  const refusal = topology.hostRefusal(shape, newHost)
  if (refusal !== undefined)
    return {
      kind: 'topology',
      rule: refusal.rule.kind,
      key: refusal.rule.key,
      counts: refusal.counts(),
    }
  const narrowed = states.map((state) => topology.choices(shape, state.state, template.index))
  const confined = states.flatMap((state, i) => {
    const choices = narrowed[i]
    if (choices === undefined || 'kind' in choices) return []
    return choices.flatMap(({ narrowing }) => classes.confined(state, narrowing) ?? [])
  })
  const [unsatisfiable] = narrowed.flatMap((each) => ('kind' in each ? [each.group] : []))
  const [first] = states
  if (confined.length === 0 && unsatisfiable !== undefined && first !== undefined) {
    const { kind: rule, key } = unsatisfiable.rule
    const podDomains = context.compiled.states.get(shape.strict.state).get(key)
    const nodeDomains = context.compiled.states.get(first.state).get(key)
    return {
      kind: 'topology',
      rule,
      key,
      counts: unsatisfiable.counts(),
      ...(podDomains !== undefined && { podDomains }),
      ...(nodeDomains !== undefined && { nodeDomains }),
    }
  }
  const target = confined[0] ?? first ?? opened
  const none = new Float64Array(shape.amounts.length)
  const holding = confined
    .flatMap((each) => [each, classes.unpriced(each) ?? each])
    .find((each) => holdsMore(each, none, shape.amounts))
  if (holding !== undefined && policy.minValues === 'Strict') {
    const missing = classes.unmetMinValues(holding, shape.amounts)
    if (missing.size > 0) return { kind: 'minValues', missing }
  }
  return filterReason(shape, target, context)
}

/** The pod's own requirements against the pool's. */
function conflict(shape: PodShape, opened: ClaimClass, context: ExplainContext): TemplateReason | undefined {
  const have = context.compiled.states.get(opened.state)
  const wanted = context.compiled.states.get(shape.wanted.state)
  const found = incompatibility(have, wanted, context.compiled.problem.policy.wellKnownLabels)
  return found === undefined ? undefined : { kind: 'incompatibleRequirements', conflict: found }
}

/** The claim with the pod's wishes, one entry per choice of volumes that suits; types or not. */
function statesWithin(
  shape: PodShape,
  opened: ClaimClass,
  { compiled: { classes } }: ExplainContext,
): readonly ClaimClass[] {
  const wanted = classes.narrowed(opened, shape.wanted)
  return wanted === undefined ? [] : shape.volumes.flatMap((wish) => classes.narrowed(wanted, wish) ?? [])
}

function volumeConflict(shape: PodShape, opened: ClaimClass, context: ExplainContext): TemplateReason {
  const wanted = context.compiled.classes.narrowed(opened, shape.wanted) ?? opened
  const have = context.compiled.states.get(wanted.state)
  for (const { state, host } of shape.volumes) {
    const found = incompatibility(
      have,
      context.compiled.states.get(state),
      context.compiled.problem.policy.wellKnownLabels,
    )
    if (found !== undefined) return { kind: 'incompatibleVolumes', conflict: found }
    if (host !== undefined)
      return { kind: 'incompatibleVolumes', conflict: { kind: 'unknownLabel', key: host.key } }
  }
  const key = shape.wanted.host?.key ?? 'kubernetes.io/hostname'
  return { kind: 'incompatibleRequirements', conflict: { kind: 'unknownLabel', key } }
}

/** Which of requirements, resources and offering no type meets (scheduling.md 5). */
function filterReason(shape: PodShape, target: ClaimClass, context: ExplainContext): TemplateReason {
  const { states, space, problem } = context.compiled
  const { policy } = problem
  const requirements = states.get(target.state)
  const open = target.allowed.filter((row) => portsFree(row, shape.hostPorts))
  if (open.length === 0) return { kind: 'hostPortClash', taken: takenPorts(target.allowed, shape.hostPorts) }
  const { attachments } = context.compiled
  const suiting = open.filter((row) => meets(row.type, requirements))
  const exceeded = attachments.exceeded(
    shape.amounts,
    suiting.map(({ type }) => type.type.name),
  )
  if (exceeded !== undefined) return { kind: 'attachLimit', ...exceeded }
  const met = { r: false, f: false, o: false, rf: false, ro: false, fo: false }
  for (const row of open) {
    const isMet = meets(row.type, requirements)
    const isOffered = offeringsWithin(row.group, requirements, policy.wellKnownLabels).length > 0
    const isFitting = isOffered && amountsFit(shape.amounts, row.room)
    met.r ||= isMet
    met.o ||= isOffered
    met.f ||= isFitting
    met.rf ||= isMet && isFitting
    met.ro ||= isMet && isOffered
    met.fo ||= isFitting
  }
  const [least, most] = requestRange(shape.amounts, open)
  const isOneAmount = amountsFit(most, least)
  return {
    kind: 'noInstanceType',
    outcome: {
      requirementsMet: met.r,
      resourcesMet: met.f,
      offeringMet: met.o,
      requirementsAndResources: met.rf,
      requirementsAndOffering: met.ro,
      resourcesAndOffering: met.fo,
    },
    requirements,
    requests: space.resources(least),
    ...(!isOneAmount && { largestRequests: space.resources(most) }),
  }
}

/** The pod with the fewest and with the most daemon pods. */
function requestRange(pod: Amounts, rows: readonly TypeRow[]): readonly [least: Amounts, most: Amounts] {
  const loads = rows.map((row) => row.daemons.amounts)
  const least = pod.slice()
  const most = pod.slice()
  addTo(
    least,
    pod.map((_, i) => Math.min(...loads.map((load) => load[i] as number))),
  )
  addTo(
    most,
    pod.map((_, i) => Math.max(...loads.map((load) => load[i] as number))),
  )
  return [least, most]
}
