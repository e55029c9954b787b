/** Every controller and loop of the operator; names, triggers and concurrency as in operations.md 7. */
import { policyOf } from './settings.ts'
import { TurnPace } from '@tenon/kube'
import type { SweepGuard } from '@tenon/provider'
import { AutoBrake } from './extensions/brake/auto-brake.ts'
import { blockedNodes } from './extensions/blocked/blocked-nodes.ts'
import { BrakeReport } from './extensions/brake/report.ts'
import { isExpectedFailure } from './cloud/expected-failures.ts'
import { guardedProvider, measuredProvider } from './cloud/provider-layers.ts'
import { type Runnable, type RunnableSpec, runnables } from './controller.ts'
import { lifecycleOf } from './composition/nodes.ts'
import { type Assembly, assemblyOf, type OperatorParts } from './composition/parts.ts'
import { timingExaminations } from './decide/decider.ts'
import {
  bufferingOf,
  nominatorOf,
  observedPodGroupsOf,
  podDeletionCostsOf,
  podGroupsOf,
  provisioningRequestsOf,
  quotasOf,
  spendNotesOf,
} from './composition/extensions.ts'
import { observingProvisionerOf, provisionerOf } from './composition/provisioning.ts'
import type { NodeExplainer } from './disruption/explain.ts'
import { disruptionOf, observedDisruptionOf } from './composition/disruption.ts'
import { NodeRepair } from './extensions/repair/controller.ts'
import { repairsNodes, repairsOf } from './composition/repairs.ts'
import { StaticClaims } from './nodepool/static/static-pools.ts'
import { ClaimCreations } from './nodeclaim/claim-creation.ts'
import { LimitReport } from './nodepool/limit-report.ts'
import { PlannedClaims } from './provisioning/planned-claims.ts'
import { NodeMetrics } from './metrics/cluster/nodes.ts'
import { NodePoolMetrics } from './metrics/cluster/nodepools.ts'
import { PodMetrics } from './metrics/cluster/pods.ts'
import { statusControllers } from './metrics/conditions/controller.ts'
import { reportSync } from './metrics/waiting.ts'
import { EvictionQueue } from './node/termination/eviction-queue.ts'
import { NodeHealth } from './node/health.ts'
import { nodeHydration } from './node/hydration.ts'
import { DrainSurge } from './extensions/surge/drain-surge.ts'
import { NodeTermination } from './node/termination/controller.ts'
import { NodeClaimConsistency } from './nodeclaim/consistency.ts'
import { NodeClaimGarbageCollection } from './nodeclaim/garbage-collection.ts'
import { ClaimDeleter } from './nodeclaim/lifecycle/delete-claim.ts'
import { disruptionConditions } from './nodeclaim/disruption-conditions.ts'
import { nodeClaimExpiration } from './nodeclaim/expiration.ts'
import { nodeClaimHydration } from './nodeclaim/hydration.ts'
import { podEvents } from './nodeclaim/pod-events.ts'
import { nodeClaimSeedCheck } from './nodeclaim/seed-check.ts'
import { nodeOverlays } from './nodeoverlay/controller.ts'
import { nodePoolCounter } from './nodepool/counter.ts'
import { nodePoolHashes } from './nodepool/hash.ts'
import { NodePoolLearning } from './nodepool/learning.ts'
import { poolPricing } from './nodepool/pricing.ts'
import { nodePoolReadiness } from './nodepool/readiness.ts'
import { NodePoolSelecting } from './nodepool/selection.ts'
import { NodePoolRegistrationHealth } from './nodepool/registration-health.ts'
import { nodePoolAnnotations } from './nodepool/annotation-report.ts'
import { NodePoolProgress } from './nodepool/progress.ts'
import { ignoredOverlays } from './nodeoverlay/ignored.ts'
import { NodePoolCanary } from './nodepool/canary.ts'
import { TemplateHistory } from './nodepool/template-history.ts'
import { NodePoolRollout } from './nodepool/rollout.ts'
import { annotationReport } from './extensions/annotations/annotation-report.ts'
import { unwrittenConditions } from './extensions/observe/fences.ts'
import { SeenNodes } from './extensions/observe/seen-nodes.ts'
import { SeenPods } from './extensions/observe/seen-pods.ts'
import { StaticDeprovisioning } from './nodepool/static/deprovisioning.ts'
import { StaticProvisioning } from './nodepool/static/provisioning.ts'
import { VpaPredictions } from './extensions/vpa/controller.ts'

/** What runs, and what answers questions about it. */
interface Controllers {
  readonly runnables: readonly Runnable[]
  readonly explainer: NodeExplainer
}

interface Specs {
  /** In the order in which they start and see a change. */
  readonly specs: readonly RunnableSpec[]
  readonly explainer: NodeExplainer
  /** Those that write nothing, and so go on while another controller is at work. */
  readonly goOnBeside?: ReadonlySet<RunnableSpec>
}

/** Builds every controller and subscribes it to what it watches. Nothing runs before `start`. */
export function buildControllers(given: OperatorParts, sweep: SweepGuard): Controllers {
  const parts = assemblyOf(given)
  const { clock, logger, random, framework, settings } = parts
  const deps = { clock, logger, random, metrics: framework, isExpected: isExpectedFailure }
  reportSync(parts)
  const { specs, explainer, goOnBeside } = settings.observeOnly
    ? observerSpecs(parts)
    : controllerSpecs(parts, sweep)
  const pace = new TurnPace(clock)
  const gateOf = (spec: RunnableSpec) => (goOnBeside?.has(spec) === true ? undefined : parts.others)
  return { runnables: runnables(specs, settings.cpuRequestsMillis, { ...deps, pace }, gateOf), explainer }
}

function controllerSpecs(parts: Assembly, sweep: SweepGuard): Specs {
  const { caches, client, clock, learning, logger, metrics, overlays, provider, settings, state } = parts
  const { staticCapacity } = settings.featureGates
  const evictions = new EvictionQueue(parts)
  const deleter = new ClaimDeleter(client, state, metrics, parts.claimJournal)
  const plannedClaims = new PlannedClaims(parts)
  const creations = new ClaimCreations(metrics, parts.claimJournal, logger)
  const limits = new LimitReport(parts)
  const staticClaims = new StaticClaims({ ...parts, creations })
  const autoBrake = autoBrakeOf(parts)
  const disruptionParts = {
    ...measured(parts, 'disruption'),
    decider: timingExaminations(parts.decider, 'disruption', parts),
  }
  const claimSources = { plannedClaims, creations, staticClaims, limits }
  const repairs = repairsOf(parts)
  const { commands, disruption, explainer } = disruptionOf(disruptionParts, {
    ...(autoBrake && { autoBrake }),
    evictions,
    deleter,
    ...claimSources,
    ...(repairs && { repairs }),
  })
  const buffering = bufferingOf(parts, parts.client)
  const measuring = [
    ...poolPricing(caches, state, measured(parts, 'state.pricing').provider, metrics, logger),
    ...metricsSpecs(parts),
    ...spendNotesOf(parts),
  ]
  const observing = observedDisruptionOf(disruptionParts, claimSources).disruption
  const specs = [
    disruptionConditions(
      parts.kubernetes,
      state,
      measured(parts, 'nodeclaim.disruption').provider,
      clock,
      settings.driftPeriodMs,
    ),
    lifecycleOf(measured(parts, 'nodeclaim.lifecycle'), deleter),
    new NodeTermination({
      ...measured(parts, 'node.termination'),
      evictions,
      ...(caches.deployments !== undefined && { hold: new DrainSurge({ ...parts, evictions }) }),
    }),
    evictions,
    nodeClaimExpiration({ ...parts, deleter }),
    nodeClaimHydration(client, caches, state),
    nodeHydration(client, caches, state),
    new NodeClaimConsistency(parts),
    ...(repairsNodes(parts)
      ? [
          repairs === undefined
            ? new NodeHealth({ ...parts, deleter })
            : new NodeRepair({ ...measured(parts, 'node.health'), deleter, ...repairs }),
        ]
      : []),
    ...(overlays === undefined
      ? []
      : [
          nodeOverlays(parts, {
            ...overlays,
            provider: measuredProvider(overlays.provider, 'nodeoverlay.controller', parts),
          }),
        ]),
    ...(staticCapacity
      ? [
          new StaticDeprovisioning(parts),
          new StaticProvisioning({
            ...measured(parts, 'static.provisioning'),
            claims: staticClaims,
            limits,
          }),
        ]
      : []),
    ...buffering.specs,
    ...quotasOf(parts),
    ...(parts.settings.vpaPredictions ? [vpaPredictionsOf(parts)] : []),
    ...podGroupsOf(parts, deleter),
    ...provisioningRequestsOf(parts, parts.client),
    nodeClaimSeedCheck(client, state, logger),
    podEvents(client, caches, state, clock),
    nominatorOf(parts),
    ...(settings.nodePools === undefined ? [] : [new NodePoolSelecting(parts, settings.nodePools)]),
    nodePoolHashes(client, caches, state),
    nodePoolReadiness(client, caches, state, provider, clock),
    new NodePoolRegistrationHealth(parts),
    ...annotationSpecs(parts),
    new NodePoolRollout(parts),
    new NodePoolCanary(parts),
    ...(policyOf(parts.settings).learns ? [new TemplateHistory(parts)] : []),
    ...(policyOf(settings).judgesBudgets ? [blockedNodes(explainer, parts)] : []),
    ...podDeletionCostsOf(parts),
    new BrakeReport(parts),
    ...(autoBrake === undefined ? [] : [autoBrake]),
    ...(learning === undefined ? [] : [new NodePoolLearning({ ...parts, learning })]),
    ...measuring,
    new NodeClaimGarbageCollection({
      ...measured(parts, 'nodeclaim.garbagecollection'),
      deleter,
      sweep,
    }),
    nodePoolCounter(client, caches, state),
    commands,
    disruption,
    observing,
    provisionerOf(measured(parts, 'provisioner'), {
      plannedClaims,
      creations,
      limits,
      hydration: buffering.hydration,
    }),
  ]
  return { specs, explainer, goOnBeside: new Set<RunnableSpec>([...measuring, observing]) }
}

/** What reads annotations of Tenon, and reports those that it cannot read. */
function annotationSpecs(parts: Assembly): readonly RunnableSpec[] {
  const { caches, client, clock, events, settings, state } = parts
  if (!policyOf(settings).readsAnnotations) return []
  return [
    nodePoolAnnotations(caches, state, events),
    annotationReport(caches, events),
    new NodePoolProgress(parts),
    ignoredOverlays(client, settings, clock),
  ]
}

/** What pauses voluntary disruption by itself, where something does. */
function autoBrakeOf(parts: Assembly): AutoBrake | undefined {
  const { settings } = parts
  return settings.autoBrake && policyOf(settings).brakes ? new AutoBrake(parts) : undefined
}

/** What a process runs that only observes: it decides and measures, and writes nothing. */
function observerSpecs(parts: Assembly): Specs {
  const { caches, logger, metrics, overlays, state } = parts
  const creations = new ClaimCreations(metrics, parts.claimJournal, logger)
  const { disruption, explainer } = observedDisruptionOf(measured(parts, 'disruption'), {
    limits: new LimitReport(parts),
    plannedClaims: new PlannedClaims(parts),
    creations,
    staticClaims: new StaticClaims({ ...parts, creations }),
  })
  const buffering = bufferingOf(parts, unwrittenConditions)
  const seenNodes = new SeenNodes(measured(parts, 'observe.shadow'))
  const seenPods = new SeenPods(parts, seenNodes)
  seenPods.follow()
  const specs = [
    ...(overlays === undefined ? [] : [nodeOverlays({ ...parts, client: unwrittenConditions }, overlays)]),
    ...poolPricing(caches, state, measured(parts, 'state.pricing').provider, metrics, logger),
    ...metricsSpecs(parts),
    ...spendNotesOf(parts),
    seenNodes,
    disruption,
    ...buffering.specs,
    ...observedPodGroupsOf(parts),
    ...provisioningRequestsOf(parts, unwrittenConditions),
    ...(parts.settings.vpaPredictions ? [vpaPredictionsOf(parts)] : []),
    observingProvisionerOf(measured(parts, 'provisioner'), buffering.hydration, seenPods),
  ]
  return { specs, explainer }
}

function vpaPredictionsOf({ client, clock, logger, state }: Assembly): VpaPredictions {
  return new VpaPredictions(client, state, clock, logger)
}

/** What measures the cluster. */
function metricsSpecs(parts: Assembly): readonly RunnableSpec[] {
  const { metrics } = parts
  return [
    ...(metrics.cluster === undefined
      ? []
      : [
          new PodMetrics({ ...parts, followed: parts.followedPods, metrics: metrics.cluster }),
          new NodeMetrics({ ...parts, metrics: metrics.cluster }),
          new NodePoolMetrics({ ...parts, metrics: metrics.cluster }),
        ]),
    ...statusControllers(parts),
  ]
}

/** The parts of one controller, whose calls to the cloud are measured under its name. */
function measured(parts: Assembly, controller: string): Assembly {
  const { caches, launchGuard, learning, overlays } = parts
  const provider = measuredProvider(parts.provider, controller, parts)
  return {
    ...parts,
    provider: guardedProvider(
      provider,
      // A provider makes an instance of what it sells, whatever such instances turned out to have. As Karpenter
      // does it, that is without the overlays, which order only what decisions choose.
      learning?.provider ?? overlays?.provider ?? parts.provider,
      launchGuard,
      caches.nodePools,
    ),
  }
}
