/** Every controller and loop of the operator; names, triggers and concurrency as in operations.md 7. */
import { policyOf } from './settings.ts'
import { TurnPace } from '@tenon/kube'
import type { SweepGuard } from '@tenon/provider'
import { AutoBrake } from './extensions/brake/auto-brake.ts'
import { BrakeReport } from './extensions/brake/report.ts'
import { isExpectedFailure } from './cloud/expected-failures.ts'
import { guardedProvider } from './cloud/guarded-provider.ts'
import { measuredProvider } from './cloud/measured-provider.ts'
import { type Runnable, type RunnableSpec, runnables } from './controller.ts'
import { healthOf, terminationOf } from './composition/nodes.ts'
import { lifecycleOf } from './composition/nodes.ts'
import { type Assembly, assemblyOf, type OperatorParts } from './composition/parts.ts'
import { timingExaminations } from './decide/decider.ts'
import { learningOf } from './composition/extensions.ts'
import { provisioningRequestsOf } from './composition/extensions.ts'
import { bufferingOf } from './composition/extensions.ts'
import { observedPodGroupsOf, podGroupsOf } from './composition/extensions.ts'
import { nominatorOf } from './composition/extensions.ts'
import { observingProvisionerOf, provisionerOf } from './composition/provisioning.ts'
import type { NodeExplainer } from './disruption/explain.ts'
import { disruptionOf, observedDisruptionOf } from './composition/disruption.ts'
import { LaunchPauses } from './nodepool/static/launch-pauses.ts'
import { StaticClaims } from './nodepool/static/static-claims.ts'
import { StaticPools } from './nodepool/static/static-pool.ts'
import { ClaimCreations } from './nodeclaim/creation/claim-creations.ts'
import { ClaimObjects } from './nodeclaim/creation/claim-objects.ts'
import { LimitReport } from './nodepool/limit-report.ts'
import { PlannedClaims } from './provisioning/planned-claims.ts'
import { NodeMetrics } from './metrics/cluster/nodes.ts'
import { NodePoolMetrics } from './metrics/cluster/nodepools.ts'
import { PodMetrics } from './metrics/cluster/pods.ts'
import { statusControllers } from './metrics/conditions/controller.ts'
import { reportSync } from './metrics/waiting.ts'
import { NodeHydration } from './node/hydration.ts'
import { EvictionQueue } from './node/termination/eviction-queue.ts'
import { NodeClaimConsistency } from './nodeclaim/consistency.ts'
import { DisruptionConditions } from './nodeclaim/disruption/disruption-conditions.ts'
import { NodeClaimExpiration } from './nodeclaim/expiration.ts'
import { NodeClaimGarbageCollection } from './nodeclaim/garbage-collection.ts'
import { NodeClaimHydration } from './nodeclaim/hydration.ts'
import { ClaimDeleter } from './nodeclaim/lifecycle/delete-claim.ts'
import { PodEvents } from './nodeclaim/pod-events.ts'
import { StateNodeClaimGC } from './nodeclaim/seed-check.ts'
import { NodeOverlayController } from './nodeoverlay/controller.ts'
import { NodePoolCounter } from './nodepool/counter.ts'
import { NodePoolHash } from './nodepool/hash.ts'
import { PoolPricing } from './nodepool/pricing.ts'
import { NodePoolReadiness } from './nodepool/readiness.ts'
import { NodePoolRegistrationHealth } from './nodepool/registration-health.ts'
import { NodePoolCanary } from './nodepool/rollout/controller.ts'
import { TemplateHistory } from './nodepool/rollout/history.ts'
import { RolloutNews } from './nodepool/rollout/news.ts'
import { NodePoolRollout } from './nodepool/rollout.ts'
import { unwrittenConditions } from './extensions/observe/fences.ts'
import { StaticDeprovisioning } from './nodepool/static/deprovisioning.ts'
import { StaticProvisioning } from './nodepool/static/provisioning.ts'
import { VpaPredictions } from './extensions/vpa/controller.ts'

/** What runs, and what answers questions about it. */
interface Controllers {
  readonly runnables: readonly Runnable[]
  readonly explainer: NodeExplainer
}

/** Builds every controller and subscribes it to what it watches. Nothing runs before `start`. */
export function buildControllers(given: OperatorParts, sweep: SweepGuard): Controllers {
  const parts = assemblyOf(given)
  const { clock, logger, random, framework, settings } = parts
  const deps = { clock, logger, random, metrics: framework, isExpected: isExpectedFailure }
  reportSync(parts)
  const { specs, explainer } = settings.observeOnly ? observerSpecs(parts) : controllerSpecs(parts, sweep)
  const pace = new TurnPace(clock)
  return { runnables: runnables(specs, settings.cpuRequestsMillis, { ...deps, pace }), explainer }
}

/** In the order in which they are told of a change and started. */
function controllerSpecs(
  parts: Assembly,
  sweep: SweepGuard,
): { readonly specs: readonly RunnableSpec[]; readonly explainer: NodeExplainer } {
  const { learning, overlays, provider } = parts
  const { nodeRepair, staticCapacity } = parts.settings.featureGates
  const evictions = new EvictionQueue(parts)
  const deleter = new ClaimDeleter(parts)
  const plannedClaims = new PlannedClaims(parts)
  const creations = new ClaimCreations(parts)
  const limits = new LimitReport(parts)
  const staticPools = new StaticPools(parts)
  const objects = new ClaimObjects(parts)
  const staticClaims = new StaticClaims({ ...parts, objects, creations })
  const autoBrake = autoBrakeOf(parts)
  const disruptionParts = {
    ...measured(parts, 'disruption'),
    decider: timingExaminations(parts.decider, 'disruption', parts),
  }
  const claimSources = { plannedClaims, creations, staticPools, staticClaims, limits }
  const { commands, disruption, explainer } = disruptionOf(disruptionParts, {
    ...(autoBrake && { autoBrake }),
    evictions,
    deleter,
    ...claimSources,
  })
  const pricing = new PoolPricing(measured(parts, 'state.pricing'))
  const buffering = bufferingOf(parts, parts.client)
  const specs = [
    new DisruptionConditions(measured(parts, 'nodeclaim.disruption')),
    lifecycleOf(measured(parts, 'nodeclaim.lifecycle'), deleter),
    terminationOf(measured(parts, 'node.termination'), evictions),
    evictions,
    new NodeClaimExpiration({ ...parts, deleter }),
    new NodeClaimHydration(parts),
    new NodeHydration(parts),
    new NodeClaimConsistency(parts),
    ...(nodeRepair && provider.repairPolicies.length > 0 ? [healthOf(parts, deleter)] : []),
    ...(overlays === undefined
      ? []
      : [
          new NodeOverlayController({
            ...parts,
            layer: {
              ...overlays,
              provider: measuredProvider(overlays.provider, 'nodeoverlay.controller', parts),
            },
          }),
        ]),
    ...(staticCapacity
      ? [
          new StaticDeprovisioning({ ...parts, pools: staticPools }),
          new StaticProvisioning({
            ...measured(parts, 'static.provisioning'),
            pools: staticPools,
            claims: staticClaims,
            pauses: new LaunchPauses(parts.clock),
            limits,
          }),
        ]
      : []),
    ...buffering.specs,
    ...(parts.settings.vpaPredictions ? [new VpaPredictions(parts)] : []),
    ...podGroupsOf(parts, deleter),
    ...provisioningRequestsOf(parts, parts.client),
    new StateNodeClaimGC(parts),
    new PodEvents(parts),
    nominatorOf(parts),
    new NodePoolHash(parts),
    new NodePoolReadiness(parts),
    new NodePoolRegistrationHealth(parts),
    new NodePoolRollout(parts),
    new NodePoolCanary({ ...parts, news: new RolloutNews(parts) }),
    ...(policyOf(parts.settings).learns ? [new TemplateHistory(parts)] : []),
    new BrakeReport(parts),
    ...(autoBrake === undefined ? [] : [autoBrake]),
    ...(learning === undefined ? [] : [learningOf(parts, learning)]),
    pricing,
    { name: 'state.pricing', run: (signal: AbortSignal) => pricing.refresh(signal) },
    ...metricsSpecs(parts),
    new NodeClaimGarbageCollection({
      ...measured(parts, 'nodeclaim.garbagecollection'),
      deleter,
      sweep,
    }),
    new NodePoolCounter(parts),
    commands,
    disruption,
    observedDisruptionOf(disruptionParts, claimSources).disruption,
    provisionerOf(measured(parts, 'provisioner'), {
      plannedClaims,
      creations,
      limits,
      hydration: buffering.hydration,
    }),
  ]
  return { specs, explainer }
}

/** What pauses voluntary disruption by itself, where something does. */
function autoBrakeOf(parts: Assembly): AutoBrake | undefined {
  const { settings } = parts
  return settings.autoBrake && policyOf(settings).brakes ? new AutoBrake(parts) : undefined
}

/** What a process runs that only observes: it decides and measures, and writes nothing. */
function observerSpecs(parts: Assembly): {
  readonly specs: readonly RunnableSpec[]
  readonly explainer: NodeExplainer
} {
  const { overlays } = parts
  const creations = new ClaimCreations(parts)
  const staticClaims = new StaticClaims({ ...parts, objects: new ClaimObjects(parts), creations })
  const { disruption, explainer } = observedDisruptionOf(measured(parts, 'disruption'), {
    limits: new LimitReport(parts),
    plannedClaims: new PlannedClaims(parts),
    creations,
    staticPools: new StaticPools(parts),
    staticClaims,
  })
  const pricing = new PoolPricing(measured(parts, 'state.pricing'))
  const buffering = bufferingOf(parts, unwrittenConditions)
  const specs = [
    ...(overlays === undefined
      ? []
      : [new NodeOverlayController({ ...parts, client: unwrittenConditions, layer: overlays })]),
    pricing,
    { name: 'state.pricing', run: (signal: AbortSignal) => pricing.refresh(signal) },
    ...metricsSpecs(parts),
    disruption,
    ...buffering.specs,
    ...observedPodGroupsOf(parts),
    ...provisioningRequestsOf(parts, unwrittenConditions),
    ...(parts.settings.vpaPredictions ? [new VpaPredictions(parts)] : []),
    observingProvisionerOf(measured(parts, 'provisioner'), buffering.hydration),
  ]
  return { specs, explainer }
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
