/** Why no NodePool can take a pod; computed once per unschedulable shape (scheduling.md 12.3). */
import { undeclaredFeatures } from '@tenon/api'
import type { DeviceOffer, PodReason, TemplateReason } from '../reasons/reasons.ts'
import { compatible, incompatibility, type Requirements } from '../requirements/requirements.ts'
import { type ClaimClass, holdsMore } from './claims/claim-class.ts'
import type { CompiledProblem } from './compiled-problem.ts'
import { type CompiledType, meets, offeringsWithin, unmetMinValues } from './types/instance-rows.ts'
import type { PodShape } from './pods/pod-shape.ts'
import { limitsOf, PoolBudget } from './claims/pool-budget.ts'
import {
  type CompiledPool,
  type DaemonLoad,
  portsFree,
  takenPorts,
  type Template,
  type TypeRow,
} from './claims/pool-template.ts'
import { addTo, type Amounts, amountsFit } from './pods/resource-space.ts'
import { untolerated } from './pods/taints.ts'
import type { PodTopology } from './topology/pod-topology.ts'
import { holding, suiting, unavailableOfferings, type UnavailableRow } from './claims/unavailable-rows.ts'

export interface ExplainContext {
  readonly compiled: CompiledProblem
  readonly topology: PodTopology
  readonly budgets: ReadonlyMap<Template, PoolBudget>
}

/**
 * The reasons of all NodePools for a shape after its last relaxation, including those whose offerings are all
 * unavailable.
 */
export function explain(shape: PodShape, newHost: number, context: ExplainContext): PodReason {
  const { compiled } = context
  const reasons = [
    ...compiled.templates
      .filter(({ isConfined }) => !isConfined)
      .map((template) => ({
        nodePool: template.name,
        reason: reasonOf(shape, template, newHost, context),
      })),
    ...compiled.emptyPools.flatMap((pool) => {
      const reason = reasonOfEmpty(shape, pool, context)
      return reason === undefined ? [] : [{ nodePool: pool.input.nodePool.metadata.name, reason }]
    }),
  ]
  if (reasons.length === 0) return { kind: 'noTypesInPools' }
  const devices = devicesOf(shape, compiled)
  return { kind: 'noTemplate', templates: reasons, ...(devices.length > 0 && { devices }) }
}

/** For each extended resource of the pod: the NodePools that allow a type with it (page.md 1). */
function devicesOf({ amounts }: PodShape, compiled: CompiledProblem): readonly DeviceOffer[] {
  const names = Object.keys(compiled.space.resources(amounts)).filter((name) => name.includes('/'))
  return names.map((resource) => {
    const index = compiled.space.indexOf(resource)
    const has = (room: Amounts | undefined) => (room?.[index] ?? 0) > 0
    const open = compiled.templates.filter(
      ({ isConfined, rows }) => !isConfined && rows.some(({ capacity }) => has(capacity)),
    )
    const closed = compiled.emptyPools.filter((pool) =>
      compiled.unavailableRows(pool).some(({ room }) => has(room)),
    )
    const nodePools = [
      ...open.map(({ name }) => name),
      ...closed.map(({ input }) => input.nodePool.metadata.name),
    ]
    return { resource, nodePools }
  })
}

/** The reason of a pool without available offerings; undefined when none of its offerings would do. */
function reasonOfEmpty(
  shape: PodShape,
  pool: CompiledPool,
  context: ExplainContext,
): TemplateReason | undefined {
  const { compiled } = context
  const unavailableRows = compiled.unavailableRows(pool)
  if (unavailableRows.length === 0) return undefined
  const { nodePool, usage } = pool.input
  const budget = new PoolBudget(limitsOf(nodePool, usage), [])
  if (budget.nodesExhausted) return { kind: 'nodeLimit' }
  const affordable = unavailableRows.filter(({ type }) => budget.allows(type))
  if (affordable.length === 0) return { kind: 'limits' }
  const refusal = refusalOf(pool, shape)
  if (refusal !== undefined) return refusal
  const { wellKnownLabels } = compiled.problem.policy
  const wanted = compiled.states.get(shape.wanted.state)
  const clash = incompatibility(pool.requirements, wanted, wellKnownLabels)
  if (clash !== undefined) return { kind: 'incompatibleRequirements', conflict: clash }
  const found = shortage(shape, pool, affordable, context)
  if (found !== undefined) return found
  const [requirements = pool.requirements] = demandsWith(shape, pool, context)
  return typeReason(
    shape,
    requirements,
    affordable.map((each) => ({ ...each, isOffered: true })),
    context,
  )
}

/** Why no node of the pool takes the pod, of whatever type and in whatever domain. */
function refusalOf({ taints, input }: CompiledPool, shape: PodShape): TemplateReason | undefined {
  const rejecting = untolerated(taints, shape.tolerations)
  if (rejecting.length > 0) return { kind: 'untoleratedTaints', taints: rejecting }
  const features = undeclaredFeatures(shape.features, input.declaredFeatures)
  return features.length === 0 ? undefined : { kind: 'undeclaredFeatures', features }
}

/** Requirements of a new claim of the pool with the pod, one entry per suitable choice of volumes. */
function demandsWith(
  shape: PodShape,
  pool: CompiledPool,
  { compiled: { states, problem } }: ExplainContext,
): readonly Requirements[] {
  const { wellKnownLabels } = problem.policy
  const merge = (state: number, demand: number) =>
    compatible(states.get(state), states.get(demand), wellKnownLabels) ? [states.merge(state, demand)] : []
  return merge(states.idOf(pool.requirements), shape.wanted.state)
    .flatMap((state) => shape.volumes.flatMap((demand) => merge(state, demand.state)))
    .map((state) => states.get(state))
}

/** Unavailable offerings that would hold the pod; undefined if there are none. */
function shortage(
  shape: PodShape,
  pool: CompiledPool,
  unavailableRows: readonly UnavailableRow[],
  context: ExplainContext,
): TemplateReason | undefined {
  if (unavailableRows.length === 0) return undefined
  const { wellKnownLabels } = context.compiled.problem.policy
  return unavailable(
    demandsWith(shape, pool, context).flatMap((demand) =>
      holding(suiting(unavailableRows, demand, wellKnownLabels), shape),
    ),
  )
}

function unavailable(unavailableRows: readonly UnavailableRow[]): TemplateReason | undefined {
  if (unavailableRows.length === 0) return undefined
  return { kind: 'unavailable', offerings: unavailableOfferings([...new Set(unavailableRows)]) }
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
  const budget = context.budgets.get(template) as PoolBudget
  if (budget.nodesExhausted) return { kind: 'nodeLimit' }
  const pool = context.compiled.poolOf(template)
  const unavailableRows = context.compiled.unavailableRows(pool).filter(({ type }) => budget.allows(type))
  const refusal = refusalOf(pool, shape)
  if (budget.affordable().length === 0) {
    const short = refusal === undefined && shortage(shape, pool, unavailableRows, context)
    return short || limitReason(budget, template.rows)
  }
  if (refusal !== undefined) return refusal
  const opened = classes.opened(template, budget.affordable())
  const clash = conflict(shape, opened, context)
  if (clash !== undefined) return clash
  const states = statesWithin(shape, opened, context)
  if (states.length === 0) return volumeConflict(shape, opened, context)
  topology.expectOnClaim(newHost, template.index)
  const closed = topology.hostRefusal(shape, newHost)
  if (closed !== undefined)
    return {
      kind: 'topology',
      rule: closed.rule.kind,
      key: closed.rule.key,
      counts: closed.counts(),
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
  const held = confined
    .flatMap((each) => [each, classes.unpriced(each) ?? each])
    .find((each) => holdsMore(each, none, shape.amounts))
  if (held !== undefined && policy.minValues === 'Strict') {
    const missing = classes.unmetMinValues(held, shape.amounts)
    if (missing.size > 0)
      return closedValues(shape, held, unavailableRows, context) ?? { kind: 'minValues', missing }
  }
  return filterReason(shape, target, unavailableRows, context)
}

/** The unavailable offerings that minValues would need. */
function closedValues(
  shape: PodShape,
  held: ClaimClass,
  unavailableRows: readonly UnavailableRow[],
  { compiled: { states, problem } }: ExplainContext,
): TemplateReason | undefined {
  const requirements = states.get(held.state)
  const closed = holding(suiting(unavailableRows, requirements, problem.policy.wellKnownLabels), shape)
  const open = held.allowed.filter(
    ({ type, room }) => meets(type, requirements) && amountsFit(shape.amounts, room),
  )
  const types = [...open, ...closed].map(({ type }) => type)
  return unmetMinValues(types, requirements).size > 0 ? undefined : unavailable(closed)
}

/** The conflict between the requirements of pod and pool. */
function conflict(shape: PodShape, opened: ClaimClass, context: ExplainContext): TemplateReason | undefined {
  const have = context.compiled.states.get(opened.state)
  const wanted = context.compiled.states.get(shape.wanted.state)
  const found = incompatibility(have, wanted, context.compiled.problem.policy.wellKnownLabels)
  return found === undefined ? undefined : { kind: 'incompatibleRequirements', conflict: found }
}

/**
 * Requirements of the new claim with the pod, one entry per suitable choice of volumes, whether or not types are left.
 */
function statesWithin(
  shape: PodShape,
  opened: ClaimClass,
  { compiled: { classes } }: ExplainContext,
): readonly ClaimClass[] {
  const wanted = classes.narrowed(opened, shape.wanted)
  return wanted === undefined ? [] : shape.volumes.flatMap((demand) => classes.narrowed(wanted, demand) ?? [])
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

/** Which quota or limit keeps these rows from being launched. */
function limitReason(
  budget: PoolBudget,
  rows: readonly TypeRow[],
  otherwise: TemplateReason = { kind: 'limits' },
): TemplateReason {
  const exhausted = budget.exhausted(rows)
  return exhausted === undefined ? otherwise : { kind: 'quota', ...exhausted }
}

/** The types that exceed limits or quotas and would hold the pod. */
function beyondLimits(
  shape: PodShape,
  { template, allowed, state }: ClaimClass,
  { compiled: { states, problem } }: ExplainContext,
): readonly TypeRow[] {
  if (allowed.length === template.rows.length) return []
  const requirements = states.get(state)
  const left = new Set(allowed)
  return template.rows.filter(
    (row) =>
      !left.has(row) &&
      meets(row.type, requirements) &&
      amountsFit(shape.amounts, row.room) &&
      portsFree(row, shape.hostPorts) &&
      offeringsWithin(row.group, requirements, problem.policy.wellKnownLabels).length > 0,
  )
}

/** Which of requirements, resources and offerings no type meets (scheduling.md 5). */
function filterReason(
  shape: PodShape,
  target: ClaimClass,
  unavailableRows: readonly UnavailableRow[],
  context: ExplainContext,
): TemplateReason {
  const { states, problem } = context.compiled
  const { wellKnownLabels } = problem.policy
  const requirements = states.get(target.state)
  const open = target.allowed.filter((row) => portsFree(row, shape.hostPorts))
  const rows = open.map((row) => ({
    ...row,
    isOffered: offeringsWithin(row.group, requirements, wellKnownLabels).length > 0,
  }))
  const isHeld = rows.some(
    ({ type, room, isOffered }) => isOffered && meets(type, requirements) && amountsFit(shape.amounts, room),
  )
  const closed = isHeld
    ? undefined
    : unavailable(holding(suiting(unavailableRows, requirements, wellKnownLabels), shape))
  if (closed !== undefined) return closed
  const beyond = isHeld ? [] : beyondLimits(shape, target, context)
  if (beyond.length > 0) {
    const budget = context.budgets.get(target.template) as PoolBudget
    return limitReason(budget, beyond, { kind: 'limits', isOfSuiting: true })
  }
  if (open.length === 0) return { kind: 'hostPortClash', taken: takenPorts(target.allowed, shape.hostPorts) }
  const { attachments } = context.compiled
  const matching = open.filter((row) => meets(row.type, requirements)).map(({ type }) => type.type.name)
  const { input } = context.compiled.poolOf(target.template)
  const driver = attachments.missing(shape.amounts, input, matching)
  if (driver !== undefined) return { kind: 'driverMissing', driver }
  const exceeded = attachments.exceeded(shape.amounts, matching)
  if (exceeded !== undefined) return { kind: 'attachLimit', ...exceeded }
  return typeReason(shape, requirements, rows, context)
}

/** A type that is checked for the pod. */
interface PossibleType {
  readonly type: CompiledType
  readonly room: Amounts
  readonly daemons: DaemonLoad
  /** Whether it has an offering that meets the requirements. */
  readonly isOffered: boolean
}

function typeReason(
  shape: PodShape,
  requirements: Requirements,
  open: readonly PossibleType[],
  { compiled: { space } }: ExplainContext,
): TemplateReason {
  const met = { r: false, f: false, o: false, rf: false, ro: false, fo: false }
  for (const row of open) {
    const isMet = meets(row.type, requirements)
    const { isOffered } = row
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

/** The requests of the pod with the smallest and with the largest set of daemon pods. */
function requestRange(pod: Amounts, rows: readonly PossibleType[]): readonly [least: Amounts, most: Amounts] {
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
