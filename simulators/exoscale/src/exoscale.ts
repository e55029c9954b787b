import type { Clock, HttpHandler, Logger, Random, Secret } from '@tenon/runtime'
import type { LocalApi, NodeJoiner } from '@tenon/devcluster'
import type { CloudContext } from './zone/cloud-state.ts'
import { zoneNames } from './zone/catalogue.ts'
import { poolUserData } from './zone/pool-user-data.ts'
import { CloudController } from './cloud-controller.ts'
import { CallLimit } from './api/call-limit.ts'
import { clusterInfo } from './zone/cluster-info.ts'
import { Faults } from './faults.ts'
import { groupRoutes } from './api/group-routes.ts'
import { createHandler, type RecordedCall } from './api/handler.ts'
import type { KeptInstances } from './instances/kept-instances.ts'
import { restoreInstances } from './instances/restored-instances.ts'
import { InstanceLife } from './instances/instance-life.ts'
import { instanceRoutes } from './api/instance-routes.ts'
import { ListedInstances } from './instances/listed-instances.ts'
import { Operations } from './instances/operations.ts'
import { poolRoutes } from './api/pool-routes.ts'
import { powerRoutes } from './api/power-routes.ts'
import { privateNetworkRoutes } from './api/private-network-routes.ts'
import { quotaRoutes } from './zone/quotas.ts'
import { defaultSettings, type ExoscaleSettings } from './settings.ts'
import { type CloudSnapshot, type InstanceSnapshot, instancesOf, snapshotOf } from './snapshot.ts'
import { sksRoutes } from './api/sks-routes.ts'
import { type Interventions, interventionsIn } from './interventions.ts'
import { sshKeyRoutes } from './api/ssh-key-routes.ts'
import { StoppableClock } from './stoppable-clock.ts'
import { createWorld, type ExoscaleSeed, plant, publishTemplate, type TemplateSeed } from './zone/world.ts'
import { zoneRoutes } from './api/zone-routes.ts'

export interface ExoscaleOptions {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  /** Lets booted instances join the cluster. */
  readonly joiner: NodeJoiner
  /** The cluster's API for its cloud controller manager. */
  readonly api: LocalApi
  /** A zone of Exoscale. */
  readonly zone: string
  /** Id of the SKS cluster; default: derived from a name. */
  readonly clusterId?: string
  /** Kubernetes version of the SKS cluster, with or without `v`; default 1.34.1. */
  readonly clusterVersion?: string
  /** URL of the API server; default: that in the cluster's ConfigMap kube-public/cluster-info. */
  readonly clusterEndpoint?: string
  /** API keys; `operations` are the operation ids that a key may call, default: all. */
  readonly credentials: readonly {
    readonly key: string
    readonly secret: Secret
    readonly operations?: readonly string[]
  }[]
  readonly settings?: Partial<ExoscaleSettings>
  /** Resources in addition to the default ones. */
  readonly seed?: ExoscaleSeed
  /** Where instances are stored between runs; stored ones continue at once. */
  readonly kept?: KeptInstances
}

/** A simulated Exoscale zone with its SKS cluster's cloud controller manager. */
export interface Exoscale {
  /** The API. Rejects if a fault loses the request or the response. */
  readonly handle: HttpHandler
  /** May be changed at any time; applies to later calls, boots and passes. */
  readonly settings: ExoscaleSettings
  readonly faults: Faults
  /** Changes of instances and pools without a call. */
  readonly interventions: Interventions
  /** Recorded calls, oldest first; at least the last 10 000. */
  calls(): readonly RecordedCall[]
  snapshot(): CloudSnapshot
  /** The instances of {@link snapshot}. */
  instances(): readonly InstanceSnapshot[]
  /** Sets the URL of this API (`http://host:port` or with `/v2`), for the list of zones. */
  setBaseUrl(url: string): void
  /** Adds resources. */
  add(seed: ExoscaleSeed): void
  /** Publishes a node image and makes it the active template of its version and variant; returns its id. */
  publishTemplate(template: TemplateSeed): string
  /** Ends every timer, boot and kubelet. The API then refuses to wait, but still serves reads. */
  stop(): void
}

/**
 * Starts a simulated Exoscale zone.
 * @throws Error for an unknown zone, or a seed with an unknown instance type.
 */
export function createExoscale(options: ExoscaleOptions): Exoscale {
  const { zone, random, logger, seed = {} } = options
  if (!zoneNames.includes(zone)) throw new Error(`unknown zone ${zone}; known are ${zoneNames.join(', ')}`)
  const clock = new StoppableClock(options.clock)
  const settings = { ...defaultSettings(), ...options.settings }
  const state = createWorld({
    zone,
    clusterId: options.clusterId,
    clusterVersion: options.clusterVersion,
    clusterEndpoint: options.clusterEndpoint,
    nowMs: clock.now(),
  })
  const context: CloudContext = {
    state,
    settings,
    clock,
    random: random.fork('cloud'),
    logger,
    ...(options.kept && { kept: options.kept }),
  }
  const operations = new Operations(context)
  const listed = new ListedInstances(context)
  const ownUserData = poolUserData(state, options.api, random.fork('pool-token'))
  const life = new InstanceLife(context, options.joiner, listed, ownUserData)
  const faults = new Faults(random.fork('faults'))
  const calls: RecordedCall[] = []
  const parts = { context, operations, life, listed }
  plant(context, life, seed)
  restoreInstances(context, life)
  const controller = new CloudController(context, options.api)
  controller.start()
  return {
    handle: createHandler({
      context,
      routes: [
        ...zoneRoutes(context, operations),
        ...instanceRoutes(parts),
        ...powerRoutes(parts),
        ...quotaRoutes(context),
        ...groupRoutes(parts),
        ...privateNetworkRoutes(parts),
        ...sshKeyRoutes(parts),
        ...poolRoutes(parts),
        ...sksRoutes(parts, () => clusterInfo(options.api)),
      ],
      access: { credentials: options.credentials, limit: new CallLimit(clock, settings) },
      faults,
      calls,
      latencyRandom: random.fork('latency'),
    }),
    settings,
    faults,
    interventions: interventionsIn(context, life),
    calls: () => [...calls],
    snapshot: () => snapshotOf(state),
    instances: () => instancesOf(state),
    setBaseUrl(url) {
      const root = url.replace(/\/+$/, '')
      state.baseUrl = root.endsWith('/v2') ? root : `${root}/v2`
    },
    add(more) {
      plant(context, life, more)
    },
    publishTemplate: (template) => publishTemplate(state, template, clock.now()),
    stop() {
      controller.stop()
      clock.stop()
      for (const instance of state.instances.values()) life.cut(instance)
    },
  }
}
