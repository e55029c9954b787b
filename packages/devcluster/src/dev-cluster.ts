/** A whole cluster in one process: API server, controllers, scheduler, kubelets, simulated Exoscale. */
import type { Clock, Logger, Random, Secret } from '@tenon/runtime'
import {
  type ApiServer,
  type ApiServerOptions,
  createApiServer,
  type Credentials,
} from './apiserver/index.ts'
import { type ControllerSettings, startControllers } from './controllers/start-controllers.ts'
import {
  createDefaultStorageClass,
  createExoscale,
  type Exoscale,
  type ExoscaleSettings,
} from './exoscale/index.ts'
import { createJoiner } from './joiner.ts'
import { keptEndpoints, keptMachines } from './kept-machines.ts'
import { createKubelets, type Kubelets } from './kubelet/kubelets.ts'
import type { KubeletSettings } from './kubelet/settings.ts'
import { type SchedulerSettings, startScheduler } from './scheduler/scheduler.ts'

/** What a cluster runs on; `settings` of a part that are absent take its defaults. */
export interface DevClusterOptions {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly credentials: Credentials
  /** State of an earlier run. */
  readonly initial?: ApiServerOptions['initial']
  /** Whether the state holds the simulated machines too, so that they outlive the process with it. */
  readonly keepsMachines?: boolean
  readonly gitVersion?: string
  readonly controllers?: Partial<ControllerSettings>
  readonly scheduler?: Partial<SchedulerSettings>
  readonly kubelets?: Partial<KubeletSettings>
  /** See {@link ApiServerOptions.recordsOwners}. */
  readonly recordsOwners?: boolean
  /** See {@link ApiServerOptions.callWebhook}. */
  readonly callWebhook?: ApiServerOptions['callWebhook']
  readonly cloud: {
    readonly zone: string
    /** Id of the simulated SKS cluster. */
    readonly clusterId: string
    readonly key: string
    readonly secret: Secret
    readonly settings?: Partial<ExoscaleSettings>
  }
}

/** A running cluster. Nothing listens on a socket before someone puts the handlers on one. */
export interface DevCluster {
  readonly server: ApiServer
  readonly exoscale: Exoscale
  readonly kubelets: Kubelets
  /** Says where the API server is reached; machines join only there. */
  announce(host: string, port: number): void
  /** Stops every part at once; open watches end. */
  stop(): void
}

/** Starts every part on the given clock. */
export function startDevCluster(options: DevClusterOptions): DevCluster {
  const { clock, random, logger, credentials, cloud } = options
  const gitVersion = options.gitVersion ?? 'v1.34.1'
  const certificateAuthority = credentials.certificateAuthority.certificate
  const server = createApiServer({
    clock,
    random,
    logger,
    adminToken: credentials.adminToken,
    signingKey: credentials.signingKey,
    gitVersion,
    ...(options.initial && { initial: options.initial }),
    ...(options.recordsOwners !== undefined && { recordsOwners: options.recordsOwners }),
    ...(options.callWebhook && { callWebhook: options.callWebhook }),
  })
  // A cluster that goes on may have lost it on purpose.
  if (options.initial === undefined) createDefaultStorageClass(server.localAs('kubectl'))
  const parts = { clock, logger }
  const controllers = startControllers({
    ...parts,
    api: server.localAs('kube-controller-manager'),
    random: random.fork('controllers'),
    settings: { certificateAuthority, ...options.controllers },
  })
  const scheduler = startScheduler({
    ...parts,
    api: server.localAs('kube-scheduler'),
    random: random.fork('scheduler'),
    ...(options.scheduler && { settings: options.scheduler }),
  })
  const kubelets = createKubelets({
    ...parts,
    api: server.localAs('kubelet'),
    random,
    ...(options.kubelets && { settings: options.kubelets }),
  })
  let endpoint = ''
  const endpoints = options.keepsMachines === true ? keptEndpoints(server.store) : undefined
  const isEndpoint = (url: string) => url === endpoint || endpoints?.has(url) === true
  const joiner = createJoiner(server, kubelets, { isEndpoint, certificateAuthority })
  const exoscale = createExoscale({
    ...parts,
    random: random.fork('exoscale'),
    joiner,
    api: server.localAs('exoscale-cloud-controller-manager'),
    zone: cloud.zone,
    clusterId: cloud.clusterId,
    clusterVersion: gitVersion.replace(/^v/, ''),
    credentials: [{ key: cloud.key, secret: cloud.secret }],
    ...(cloud.settings && { settings: cloud.settings }),
    ...(options.keepsMachines === true && { kept: keptMachines(server.store) }),
  })
  return {
    server,
    exoscale,
    kubelets,
    announce(host, port) {
      endpoint = `https://${host}:${port}`
      endpoints?.add(endpoint)
      server.publishEndpoint({ host, port, certificateAuthority })
    },
    stop() {
      exoscale.stop()
      kubelets.stop()
      scheduler.stop()
      controllers.stop()
      server.stop()
    },
  }
}
