/** A whole cluster in one process: API server, controllers, scheduler, kubelets, and a simulated cloud. */
import type { Clock, Logger, Random, Runtime, Secret, Transport } from '@tenon/runtime'
import {
  type ApiServer,
  type ApiServerOptions,
  createApiServer,
  type Credentials,
} from './apiserver/index.ts'
import { type ControllerSettings, startControllers } from './controllers/start-controllers.ts'
import type { KubeletRunner, LocalApi, NodeJoiner } from './contract.ts'
import { createJoiner } from './joiner.ts'
import { keptEndpoints, type KeptInstances, keptInstances, type InstanceRecord } from './kept-instances.ts'
import { createKubelets, type Kubelets } from './kubelet/kubelets.ts'
import type { KubeletSettings } from './kubelet/settings.ts'
import { type SchedulerSettings, startScheduler } from './scheduler/scheduler.ts'

/** What a simulated cloud gets of its cluster. */
export interface SimulatorParts {
  /** Its random source is forked by the simulator under a name of its own. */
  readonly runtime: Runtime
  /** How instances become nodes. */
  readonly nodes: {
    /** Lets booted instances into the cluster. */
    readonly joiner: NodeJoiner
    /** Runs nodes that need not join: those of a cloud that creates the Node objects itself. */
    readonly kubelets: KubeletRunner
  }
  readonly api: SimulatorApi
  /** Where instances are stored; absent when they end with the process. */
  readonly keptInstances?: <R extends InstanceRecord>() => KeptInstances<R>
}

/** The API server as a simulated cloud uses it. */
interface SimulatorApi {
  /** The API server for a user, such as the cloud controller manager. */
  readonly as: (user: string) => LocalApi
  /** The API server over HTTP as its administrator, without a socket: for a cloud that is an operator itself. */
  readonly transport: Transport
  /** Of the API server, without `v`. */
  readonly version: string
}

/** A simulated cloud in a cluster. */
export interface SimulatedCloud {
  /** Ends every timer, boot and kubelet. */
  stop(): void
}

/** Makes the simulated cloud of a cluster. */
export interface CloudSimulator<C extends SimulatedCloud> {
  /** Creates what a fresh cluster in this cloud holds from the start. */
  prepare(api: LocalApi): void
  start(parts: SimulatorParts): C
}

/** What a cluster runs on; `settings` of a part that are absent take its defaults. */
export interface DevClusterOptions<C extends SimulatedCloud> {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly credentials: Credentials
  /** State of an earlier run. */
  readonly initial?: ApiServerOptions['initial']
  /** Whether the state holds the simulated instances too, so that they outlive the process with it. */
  readonly keepsInstances?: boolean
  readonly gitVersion?: string
  readonly controllers?: Partial<ControllerSettings>
  readonly scheduler?: Partial<SchedulerSettings>
  readonly kubelets?: Partial<KubeletSettings>
  /** See {@link ApiServerOptions.recordsOwners}. */
  readonly recordsOwners?: boolean
  /** See {@link ApiServerOptions.featureGates}. */
  readonly featureGates?: ApiServerOptions['featureGates']
  /** See {@link ApiServerOptions.callWebhook}. */
  readonly callWebhook?: ApiServerOptions['callWebhook']
  readonly simulator: CloudSimulator<C>
}

/** A running cluster. Nothing listens on a socket before someone puts the handlers on one. */
export interface DevCluster<C extends SimulatedCloud> {
  readonly server: ApiServer
  readonly cloud: C
  readonly kubelets: Kubelets
  /** The API server over HTTP as its administrator, without a socket. */
  readonly transport: Transport
  /** Says where the API server is reached; instances join only there. */
  announce(host: string, port: number): void
  /** Stops every part at once; open watches end. */
  stop(): void
}

/** Starts every part on the given clock. */
export function startDevCluster<C extends SimulatedCloud>(options: DevClusterOptions<C>): DevCluster<C> {
  const { clock, random, logger, credentials, simulator } = options
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
    ...(options.featureGates && { featureGates: options.featureGates }),
    ...(options.callWebhook && { callWebhook: options.callWebhook }),
  })
  // A cluster that goes on may have lost it on purpose.
  if (options.initial === undefined) simulator.prepare(server.localAs('kubectl'))
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
  const endpoints = options.keepsInstances === true ? keptEndpoints(server.store) : undefined
  const isEndpoint = (url: string) => url === endpoint || endpoints?.has(url) === true
  const joiner = createJoiner(server, kubelets, { isEndpoint, certificateAuthority })
  const transport = administratorOf(server, credentials.adminToken)
  const cloud = simulator.start({
    runtime: { ...parts, random },
    nodes: { joiner, kubelets },
    api: {
      as: (user) => server.localAs(user),
      transport,
      version: gitVersion.replace(/^v/, ''),
    },
    ...(options.keepsInstances === true && { keptInstances: () => keptInstances(server.store) }),
  })
  return {
    server,
    cloud,
    kubelets,
    transport,
    announce(host, port) {
      endpoint = `https://${host}:${port}`
      endpoints?.add(endpoint)
      server.publishEndpoint({ host, port, certificateAuthority })
    },
    stop() {
      cloud.stop()
      kubelets.stop()
      scheduler.stop()
      controllers.stop()
      server.stop()
    },
  }
}

function administratorOf(server: ApiServer, token: Secret): Transport {
  const authorization = `Bearer ${token.reveal()}`
  return {
    send: (request, signal) =>
      server.handle({ ...request, headers: { ...request.headers, authorization } }, signal),
  }
}
