/** Every controller and loop of the operator; names, triggers and concurrency as in operations.md 7. */
import { TurnPace } from '@tenon/kube'
import type { SweepGuard } from '@tenon/provider'
import { isExpectedFailure } from './cloud/expected-failures.ts'
import { guardedProvider } from './cloud/guarded-provider.ts'
import { measuredProvider } from './cloud/measured-provider.ts'
import type { OperatorContext } from './context.ts'
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

/** Builds every controller and subscribes it to what it watches. Nothing runs before `start`. */
export function buildControllers(context: OperatorContext, sweep: SweepGuard): readonly Runnable[] {
  const { clock, logger, random, framework, settings } = context
  const deps = { clock, logger, random, metrics: framework, isExpected: isExpectedFailure }
  reportSync(context)
  return runnables(controllerSpecs(context, sweep), settings.cpuRequestsMillis, {
    ...deps,
    pace: new TurnPace(clock),
  })
}

/** In the order in which they are told of a change and started. */
function controllerSpecs(context: OperatorContext, sweep: SweepGuard): readonly RunnableSpec[] {
  const { learning, metrics, overlays, provider } = context
  const { nodeRepair, staticCapacity } = context.settings.featureGates
  const evictions = new EvictionQueue(context)
  const disruption = new Disruption(
    {
      ...measured(context, 'disruption'),
      decider: measuredDecider(context.decider, 'disruption', context),
    },
    evictions,
  )
  const pricing = new PoolPricing(measured(context, 'state.pricing'))
  return [
    new DisruptionConditions(measured(context, 'nodeclaim.disruption')),
    new NodeClaimLifecycle(measured(context, 'nodeclaim.lifecycle')),
    new NodeTermination(measured(context, 'node.termination'), evictions),
    evictions,
    new NodeClaimExpiration(context),
    new NodeClaimHydration(context),
    new NodeHydration(context),
    new NodeClaimConsistency(context),
    ...(nodeRepair && provider.repairPolicies.length > 0 ? [new NodeHealth(context)] : []),
    ...(overlays === undefined
      ? []
      : [
          new NodeOverlayController(context, {
            ...overlays,
            provider: measuredProvider(overlays.provider, 'nodeoverlay.controller', context),
          }),
        ]),
    ...(staticCapacity ? [new StaticDeprovisioning(context), new StaticProvisioning(context)] : []),
    new StateNodeClaimGC(context),
    new PodEvents(context),
    new Nominator(context),
    new NodePoolHash(context),
    new NodePoolReadiness(context),
    new NodePoolRegistrationHealth(context),
    new NodePoolRollout(context),
    ...(learning === undefined ? [] : [new NodePoolLearning(context)]),
    pricing,
    { name: 'state.pricing', run: (signal) => pricing.refresh(signal) },
    ...(metrics.cluster === undefined
      ? []
      : [
          new PodMetrics(context, metrics.cluster),
          new NodeMetrics(context, metrics.cluster),
          new NodePoolMetrics(context, metrics.cluster),
        ]),
    ...statusControllers(context),
    new NodeClaimGarbageCollection(measured(context, 'nodeclaim.garbagecollection'), sweep),
    new NodePoolCounter(context),
    disruption.commands,
    disruption,
    new Provisioner(measured(context, 'provisioner')),
  ]
}

/** The context of one controller, whose calls to the cloud are measured under its name. */
function measured(context: OperatorContext, controller: string): OperatorContext {
  const { caches, launchGuard, learning } = context
  const provider = measuredProvider(context.provider, controller, context)
  if (launchGuard === undefined) return { ...context, provider }
  return {
    ...context,
    provider: guardedProvider(
      provider,
      // A provider makes an instance of what it sells, whatever such instances turned out to have.
      learning?.provider ?? context.provider,
      launchGuard,
      caches.nodePools,
    ),
  }
}
