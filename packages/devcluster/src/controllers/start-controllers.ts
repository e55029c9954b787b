import type { Clock, Logger, Random } from '@tenon/runtime'
import type { LocalApi } from '../contract.ts'
import {
  type ControllerContext,
  type ControllerSettings,
  defaultSettings,
  type WorkloadControllerName,
} from './context.ts'
import { autoscalers } from './autoscaling/autoscaler-controller.ts'
import { cronJobs } from './cronjob/cronjob-controller.ts'
import { daemonSets } from './daemonset/daemonset-controller.ts'
import { deployments } from './deployment/deployment-controller.ts'
import { deviceTaintEviction } from './devices/device-taint-eviction-controller.ts'
import { resourceClaims } from './devices/resource-claim-controller.ts'
import { disruptionBudgets } from './disruption/disruption-controller.ts'
import { garbageCollection } from './garbage-collection/garbage-collector.ts'
import { jobs } from './job/job-controller.ts'
import { ClusterStore } from './loop/cluster-store.ts'
import { EventRecorder } from './loop/event-recorder.ts'
import { ReconcileLoop } from './loop/reconcile-loop.ts'
import { namespaceDefaults, namespaces } from './namespace/namespace-controller.ts'
import { nodeLifecycle } from './node-lifecycle/node-lifecycle-controller.ts'
import { podGarbageCollection } from './node-lifecycle/pod-gc-controller.ts'
import { taintEviction } from './node-lifecycle/taint-eviction-controller.ts'
import { podGroupProtection } from './pod-groups/pod-group-protection.ts'
import { replicaSets, replicationControllers } from './replicaset/replicaset-controller.ts'
import { serviceEndpoints } from './services/endpoints-controller.ts'
import { loadBalancers } from './services/load-balancers.ts'
import { statefulSets } from './statefulset/statefulset-controller.ts'
import { ephemeralVolumes } from './storage/ephemeral-volume-controller.ts'
import { volumeBinding } from './storage/volume-binding-controller.ts'

export type { ControllerSettings } from './context.ts'

type StartController = (context: ControllerContext) => void

/** In the order in which they start; those with a name may be turned off. */
const controllers: readonly (StartController | readonly [WorkloadControllerName, StartController])[] = [
  ['deployment-controller', deployments],
  ['replicaset-controller', replicaSets],
  ['replicationcontroller-controller', replicationControllers],
  ['statefulset-controller', statefulSets],
  daemonSets,
  ['job-controller', jobs],
  ['cronjob-controller', cronJobs],
  ['horizontal-pod-autoscaler-controller', autoscalers],
  disruptionBudgets,
  namespaces,
  namespaceDefaults,
  nodeLifecycle,
  taintEviction,
  podGarbageCollection,
  ['endpoints-controller', serviceEndpoints],
  loadBalancers,
  ephemeralVolumes,
  volumeBinding,
  resourceClaims,
  deviceTaintEviction,
  podGroupProtection,
]

/**
 * Starts the controllers of a cluster on its API. They have no state that matters: after a restart with the same API
 * they continue.
 */
export function startControllers(options: {
  readonly api: LocalApi
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly settings?: Partial<ControllerSettings>
}): { stop(): void } {
  const { api, clock, random, logger } = options
  const settings = { ...defaultSettings, ...options.settings }
  const loop = new ReconcileLoop(clock, logger, { leastRestMs: settings.leastRestMs })
  const store = new ClusterStore(api)
  const events = new EventRecorder(api, clock, logger, settings.recordsEvents)
  const context: ControllerContext = { store, loop, events, clock, random, log: logger, settings }
  for (const controller of controllers) {
    if (typeof controller === 'function') controller(context)
    else if (!settings.without.includes(controller[0])) controller[1](context)
  }
  const collector = garbageCollection(context)
  store.start()
  return {
    stop() {
      loop.stop()
      collector.stop()
      store.stop()
    },
  }
}
