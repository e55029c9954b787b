/** Every controller and loop of the operator; names, triggers and concurrency as in operations.md 7. */
import { type EventRecorder, type KubeClient, TurnPace } from '@tenon/kube'
import type { CloudProvider, SweepGuard } from '@tenon/provider'
import type { Clock, Logger, Random, Turns } from '@tenon/runtime'
import { isExpectedFailure } from './cloud/expected-failures.ts'
import { guardedProvider } from './cloud/guarded-provider.ts'
import { measuredProvider } from './cloud/measured-provider.ts'
import { type Runnable, type RunnableSpec, runnables } from './controller.ts'
import { measuredDecider } from './decider/measured-decider.ts'
import { Disruption } from './disruption/controller.ts'
import { NodeMetrics } from './metrics/cluster/nodes.ts'
import { NodePoolMetrics } from './metrics/cluster/nodepools.ts'
import { PodMetrics } from './metrics/cluster/pods.ts'
import { statusControllers } from './metrics/conditions/kinds.ts'
import { reportSync } from './metrics/sync-report.ts'
import { NodeHealth } from './node/health/controller.ts'
import { NodeHydration } from './node/hydration.ts'
import { NodeTermination } from './node/termination/controller.ts'
import { EvictionQueue } from './node/termination/eviction-queue.ts'
import { NodeClaimConsistency } from './nodeclaim/consistency.ts'
import { DisruptionConditions } from './nodeclaim/disruption/disruption-conditions.ts'
import { NodeClaimExpiration } from './nodeclaim/expiration.ts'
import { NodeClaimGarbageCollection } from './nodeclaim/garbage-collection.ts'
import { NodeClaimHydration } from './nodeclaim/hydration.ts'
import { NodeClaimLifecycle } from './nodeclaim/lifecycle/controller.ts'
import { PodEvents } from './nodeclaim/pod-events.ts'
import { StateNodeClaimGC } from './nodeclaim/seed-check.ts'
import { NodeOverlayController } from './nodeoverlay/controller.ts'
import { NodePoolCounter } from './nodepool/counter.ts'
import { NodePoolHash } from './nodepool/hash.ts'
import { NodePoolLearning } from './nodepool/learning.ts'
import { PoolPricing } from './nodepool/pricing.ts'
import { NodePoolReadiness } from './nodepool/readiness.ts'
import { NodePoolRegistrationHealth } from './nodepool/registration-health.ts'
import { NodePoolRollout } from './nodepool/rollout.ts'
import { StaticDeprovisioning } from './nodepool/static/deprovisioning.ts'
import { StaticProvisioning } from './nodepool/static/provisioning.ts'
import { Nominator } from './placement/nominator.ts'
import { Provisioner } from './provisioning/provisioner.ts'
import type { CapacityLearning } from './cloud/corrected-provider.ts'
import type { LaunchGuard } from './cloud/launch-guard.ts'
import type { DisruptionAnswers } from './disruption/answers.ts'
import type { PlacementGate } from './placement/gate.ts'
import type { OverlayLayer } from './nodeoverlay/overlaid-provider.ts'
import type { SchedulingDecider } from './decider/decider.ts'
import type { FrameworkMetrics } from './metrics/framework/framework.ts'
import type { Metrics } from './metrics/metrics.ts'
import type { PassAges } from './metrics/pass-ages.ts'
import type { Caches } from './cluster/caches.ts'
import type { Settings } from './settings.ts'
import type { ClusterState } from './cluster/cluster-state.ts'

/** What controllers are built from; each takes what it uses. */
export interface OperatorParts {
  readonly client: KubeClient
  readonly caches: Caches
  readonly state: ClusterState
  /** With the overlays of NodeOverlays, if these are served, and types no larger than their instances. */
  readonly provider: CloudProvider
  /** What is beneath; absent without the feature gate. */
  readonly overlays?: OverlayLayer
  /** What instances really have, and the provider without it; absent with `compatibility: karpenter`. */
  readonly learning?: CapacityLearning
  /** Knows which offerings failed lately; absent with `compatibility: karpenter`. */
  readonly launchGuard?: LaunchGuard
  readonly events: EventRecorder
  readonly decider: SchedulingDecider
  readonly placementGate: PlacementGate
  /** Why nodes are still there. */
  readonly answers: DisruptionAnswers
  readonly metrics: Metrics
  /** Told what controllers do. */
  readonly framework: FrameworkMetrics
  readonly passAges: PassAges
  readonly clock: Clock
  readonly turns: Turns
  readonly random: Random
  readonly logger: Logger
  readonly settings: Settings
}

/** Builds every controller and subscribes it to what it watches. Nothing runs before `start`. */
export function buildControllers(parts: OperatorParts, sweep: SweepGuard): readonly Runnable[] {
  const { clock, logger, random, framework, settings } = parts
  const deps = { clock, logger, random, metrics: framework, isExpected: isExpectedFailure }
  reportSync(parts)
  return runnables(controllerSpecs(parts, sweep), settings.cpuRequestsMillis, {
    ...deps,
    pace: new TurnPace(clock),
  })
}

/** In the order in which they are told of a change and started. */
function controllerSpecs(parts: OperatorParts, sweep: SweepGuard): readonly RunnableSpec[] {
  const { learning, metrics, overlays, provider } = parts
  const { nodeRepair, staticCapacity } = parts.settings.featureGates
  const evictions = new EvictionQueue(parts)
  const disruption = new Disruption(
    {
      ...measured(parts, 'disruption'),
      decider: measuredDecider(parts.decider, 'disruption', parts),
    },
    evictions,
  )
  const pricing = new PoolPricing(measured(parts, 'state.pricing'))
  return [
    new DisruptionConditions(measured(parts, 'nodeclaim.disruption')),
    new NodeClaimLifecycle(measured(parts, 'nodeclaim.lifecycle')),
    new NodeTermination(measured(parts, 'node.termination'), evictions),
    evictions,
    new NodeClaimExpiration(parts),
    new NodeClaimHydration(parts),
    new NodeHydration(parts),
    new NodeClaimConsistency(parts),
    ...(nodeRepair && provider.repairPolicies.length > 0 ? [new NodeHealth(parts)] : []),
    ...(overlays === undefined
      ? []
      : [
          new NodeOverlayController(parts, {
            ...overlays,
            provider: measuredProvider(overlays.provider, 'nodeoverlay.controller', parts),
          }),
        ]),
    ...(staticCapacity ? [new StaticDeprovisioning(parts), new StaticProvisioning(parts)] : []),
    new StateNodeClaimGC(parts),
    new PodEvents(parts),
    new Nominator(parts),
    new NodePoolHash(parts),
    new NodePoolReadiness(parts),
    new NodePoolRegistrationHealth(parts),
    new NodePoolRollout(parts),
    ...(learning === undefined ? [] : [new NodePoolLearning(parts)]),
    pricing,
    { name: 'state.pricing', run: (signal) => pricing.refresh(signal) },
    ...(metrics.cluster === undefined
      ? []
      : [
          new PodMetrics(parts, metrics.cluster),
          new NodeMetrics(parts, metrics.cluster),
          new NodePoolMetrics(parts, metrics.cluster),
        ]),
    ...statusControllers(parts),
    new NodeClaimGarbageCollection(measured(parts, 'nodeclaim.garbagecollection'), sweep),
    new NodePoolCounter(parts),
    disruption.commands,
    disruption,
    new Provisioner(measured(parts, 'provisioner')),
  ]
}

/** The parts of one controller, whose calls to the cloud are measured under its name. */
function measured(parts: OperatorParts, controller: string): OperatorParts {
  const { caches, launchGuard, learning } = parts
  const provider = measuredProvider(parts.provider, controller, parts)
  if (launchGuard === undefined) return { ...parts, provider }
  return {
    ...parts,
    provider: guardedProvider(
      provider,
      // A provider makes an instance of what it sells, whatever such instances turned out to have.
      learning?.provider ?? parts.provider,
      launchGuard,
      caches.nodePools,
    ),
  }
}
