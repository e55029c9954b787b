/** Builds the disruption loop: its methods, and the commands that carry out what they decide. */
import { policyOf } from '../settings.ts'
import { labels } from '@tenon/api'
import { labelsOf } from '../state/nodes/state-node.ts'
import { soldOutProvider } from '../cloud/provider-layers.ts'
import { DisruptionBudgets } from '../disruption/budget.ts'
import { CommandEnd, CommandTraces, PodMoves } from '../disruption/commands/command-end.ts'
import { CommandReport } from '../disruption/commands/command-report.ts'
import { CommandStart } from '../disruption/commands/command-start.ts'
import { Commands } from '../disruption/commands/commands.ts'
import { DisruptionMarks, LeftMarks } from '../disruption/commands/marks.ts'
import { PlannedReplacements } from '../disruption/commands/planned-replacement.ts'
import { Replacements } from '../disruption/commands/replacements.ts'
import { Disruption, type MethodTurn, MethodTurns, type Orders } from '../disruption/controller.ts'
import { NodeExplainer, NodeVerdicts } from '../disruption/explain.ts'
import { Consolidation, ConsolidationAdmission } from '../disruption/methods/consolidation.ts'

import { ConsolidationSearch } from '../disruption/methods/consolidation-search.ts'
import { Drift, DriftTogether } from '../disruption/methods/drift.ts'
import { Emptiness } from '../disruption/methods/emptiness.ts'
import { SearchMemory } from '../disruption/methods/search-memory.ts'
import { StaticDrift } from '../disruption/methods/static-drift.ts'
import { ConsolidationPolicy } from '../disruption/policy.ts'
import { whyFull } from '../disruption/node-limits.ts'
import { DisruptionReport } from '../disruption/report.ts'
import { ResumePace } from '../disruption/resume-pace.ts'
import type { WholeUnits } from '../disruption/whole-units.ts'
import { MoveValidation } from '../disruption/validation.ts'
import type { AutoBrake } from '../extensions/brake/auto-brake.ts'
import { Repair } from '../extensions/repair/method.ts'
import { Metrics } from '../metrics/metrics.ts'
import { noEvents } from '../extensions/observe/fences.ts'
import { observedDisruption, ObservedMoves } from '../extensions/observe/observed-disruption.ts'
import type { SingletonSpec } from '../controller.ts'
import type { PoolKind } from '../state/nodepools/observed-pools.ts'
import type { EvictionQueue } from '../node/termination/eviction-queue.ts'
import type { ClaimDeleter } from '../nodeclaim/lifecycle/delete-claim.ts'
import type { StaticClaims } from '../nodepool/static/static-pools.ts'
import { KeptPlans } from '../placement/planned-pods.ts'
import type { LimitReport } from '../nodepool/limit-report.ts'
import type { ClaimCreations } from '../nodeclaim/claim-creation.ts'
import type { PlannedClaims } from '../provisioning/planned-claims.ts'
import type { Assembly } from './parts.ts'
import type { Repairs } from './repairs.ts'
import { readersOf } from './readers.ts'

/** What the disruption loop shares with other controllers. */
export interface Shared extends ClaimSources {
  /** Absent where nothing pauses by itself. */
  readonly autoBrake?: AutoBrake
  readonly evictions: EvictionQueue
  readonly deleter: ClaimDeleter
}

/** What makes claims in place of nodes that go. */
export interface ClaimSources {
  /** Absent in the compatibility mode, and where nodes are not repaired. */
  readonly repairs?: Repairs
  readonly plannedClaims: PlannedClaims
  readonly creations: ClaimCreations
  readonly staticClaims: StaticClaims
  readonly limits: LimitReport
}

interface DisruptionLoop {
  readonly commands: Commands
  readonly disruption: Disruption
  /** Tells of each node why it is still there. */
  readonly explainer: NodeExplainer
}

export function disruptionOf(parts: Assembly, shared: Shared): DisruptionLoop {
  const marks = new DisruptionMarks(parts)
  const commands = commandsOf(parts, shared, marks)
  const { observed } = parts
  const isKarpenter = !policyOf(parts.settings).readsAnnotations
  const pace = isKarpenter ? undefined : new ResumePace(parts)
  const orders: Orders = {
    mayTake: (stateNode) =>
      !commands.has(stateNode.providerID) &&
      !commands.isBackingOff(stateNode.providerID) &&
      !observed.has(labelsOf(stateNode)[labels.nodePool] ?? ''),
    whyNoLaunch: (pool) => commands.whyNoLaunch(pool) ?? whyFull(parts, pool),
    async begin(command, signal) {
      const overtaken = await commands.begin(command, signal)
      if (overtaken === undefined) pace?.begun(command)
      return overtaken
    },
  }
  const { any, budgets, methods, policy } = methodsOf(
    { ...parts, ...(pace && { pace }) },
    shared,
    orders,
    'acting',
  )
  const leftovers = [
    shared.plannedClaims,
    new LeftMarks(parts.state, marks, (providerID) => commands.has(providerID)),
  ]
  const turns = new MethodTurns({ ...parts, orders, methods })
  const outlooks = shared.repairs && { outlooks: shared.repairs.rules }
  const verdicts = new NodeVerdicts({ ...parts, candidates: any.candidates, budgets, policy, ...outlooks })
  return {
    commands,
    disruption: new Disruption({
      ...parts,
      budgets,
      leftovers,
      turns,
      timetables: pace === undefined ? [] : [budgets, parts.state.windows, pace],
    }),
    explainer: new NodeExplainer({ ...parts, catalogue: any.catalogue, commands, verdicts }),
  }
}

/** Decides about observed nodes. */
export function observedDisruptionOf(
  given: Assembly,
  shared: ClaimSources,
): { readonly disruption: SingletonSpec; readonly explainer: NodeExplainer } {
  // Of what is only observed, neither events nor metrics tell as if it happened.
  const parts: Assembly = {
    ...given,
    events: noEvents,
    kubernetes: { ...given.kubernetes, events: noEvents },
    ...(!given.observed.isAll && { metrics: new Metrics({ clock: given.clock }) }),
  }
  const moves = new ObservedMoves(parts)
  const orders: Orders = {
    mayTake: (stateNode) => moves.mayTake(stateNode),
    whyNoLaunch: (pool) => whyFull(parts, pool),
    begin: (command) => Promise.resolve(moves.note(command)),
  }
  const { any, budgets, methods, policy } = methodsOf(parts, shared, orders, 'any')
  const commands = { has: () => false, isBackingOff: () => false }
  const verdicts = new NodeVerdicts({ ...parts, candidates: any.candidates, budgets, policy })
  return {
    disruption: observedDisruption(
      moves,
      new MethodTurns({ ...parts, orders, methods }),
      parts.observed,
      parts.state,
      parts.settings,
    ),
    explainer: new NodeExplainer({ ...parts, catalogue: any.catalogue, commands, verdicts }),
  }
}

/** The methods in the order of their turns, and what they have in common. */
function methodsOf(
  parts: Assembly & { readonly pace?: ResumePace },
  shared: ClaimSources,
  orders: Orders,
  kind: PoolKind,
) {
  const { settings } = parts
  const { plannedClaims } = shared
  const budgets = new DisruptionBudgets(parts)
  const policy = new ConsolidationPolicy(parts)
  const report = new DisruptionReport({ ...parts })
  const any = readersOf(parts, budgets, kind)
  // Where nothing is for sale that may not be launched in place of nodes now.
  const provider = soldOutProvider(parts.provider, (pool) => orders.whyNoLaunch(pool))
  const cheaper = readersOf({ ...parts, provider }, budgets, kind)
  const plans = new KeptPlans(parts.state.plans, parts.placementGate)
  const common = { ...parts, plans, claims: plannedClaims, creations: shared.creations }
  const replacements = new PlannedReplacements(common)
  const admission = (units?: WholeUnits) =>
    new ConsolidationAdmission({ policy, report, clock: parts.clock, ...(units && { units }) })
  const validation = new MoveValidation({ ...parts, ...cheaper })
  const consolidation = (scope: 'global' | 'multi' | 'single' | 'together'): MethodTurn => ({
    sources: cheaper.sources,
    method: new Consolidation({
      admission: admission(scope === 'together' ? cheaper.units : undefined),
      memory: new SearchMemory(parts, scope),
      payBack: parts,
      search: new ConsolidationSearch({ ...parts, simulation: cheaper.simulation }, scope),
      validation,
      replacements,
      plans,
      commandJournal: parts.commandJournal,
      report,
    }),
  })
  const drift = {
    ...parts,
    limits: shared.limits,
    simulation: any.simulation,
    replacements,
    report,
  }
  const staticDrift = { ...drift, claims: shared.staticClaims }
  const movesGroups = parts.state.podGroups.isOn
  const { repairs } = shared
  const methods: readonly MethodTurn[] = [
    ...(repairs === undefined
      ? []
      : [
          {
            method: new Repair({ ...drift, rules: repairs.rules, repairReport: repairs.report }),
            sources: any.sources,
          },
        ]),
    { method: new Emptiness({ ...parts, policy, report }), sources: any.sources },
    { method: new StaticDrift(staticDrift), sources: any.sources },
    { method: new Drift(drift), sources: any.sources },
    ...(movesGroups
      ? [{ method: new DriftTogether({ ...drift, units: any.units }), sources: any.sources }]
      : []),
    ...(settings.featureGates.globalConsolidation && policyOf(settings).consolidatesGlobally
      ? [consolidation('global')]
      : [consolidation('multi'), consolidation('single')]),
    ...(movesGroups ? [consolidation('together')] : []),
  ]
  return { any, budgets, methods, policy }
}

function commandsOf(
  parts: Assembly,
  { autoBrake, deleter, evictions }: Shared,
  marks: DisruptionMarks,
): Commands {
  const replacements = new Replacements({ ...parts, ...(autoBrake && { autoBrake }) })
  const report = new CommandReport(parts)
  const traces = new CommandTraces(parts)
  const moves = new PodMoves({ ...parts, evictions })
  const commands = new Commands({
    start: new CommandStart({ ...parts, marks, replacements, report }),
    end: new CommandEnd({ ...parts, traces, moves, marks, deleter, report }),
    traces,
    replacements,
    moves,
    clock: parts.clock,
    tracer: parts.tracer,
  })
  parts.others?.onOpen(() => {
    commands.verifyAgain()
  })
  return commands
}
