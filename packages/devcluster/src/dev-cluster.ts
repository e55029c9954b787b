/** A cluster in one process: API server, controllers, scheduler, kubelets, and a simulated cloud. */
import { minorOf, resizedRequests, scoredBalance, servesImplicitNames } from '@tenon/api'
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

/** What a simulated cloud gets from its cluster. */
export interface SimulatorParts {
  /** The simulator forks its random source under its own name. */
  readonly runtime: Runtime
  /** How instances become nodes. */
  readonly nodes: {
    /** Lets booted instances join the cluster. */
    readonly joiner: NodeJoiner
    /** Runs nodes that need not join, for a cloud that creates Node objects itself. */
    readonly kubelets: KubeletRunner
  }
  readonly api: SimulatorApi
  /** Where instances are stored; absent if they end with the process. */
  readonly keptInstances?: <R extends InstanceRecord>() => KeptInstances<R>
}

/** The API server as a simulated cloud uses it. */
interface SimulatorApi {
  /** The API server for a user, such as the cloud controller manager. */
  readonly as: (user: string) => LocalApi
  /** The API server over HTTP as administrator, without a socket, for a cloud that is an operator. */
  readonly transport: Transport
  /** Of the API server, without `v`. */
  readonly version: string
}

export interface SimulatedCloud {
  /** Ends every timer, boot and kubelet. */
  stop(): void
}

/** Creates the simulated cloud of a cluster. */
export interface CloudSimulator<C extends SimulatedCloud> {
  /** Creates the initial objects of a new cluster in this cloud. */
  prepare(api: LocalApi): void
  start(parts: SimulatorParts): C
}

/** What a cluster needs; absent settings have defaults. */
export interface DevClusterOptions<C extends SimulatedCloud> {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
  readonly credentials: Credentials
  /** State of an earlier run. */
  readonly initial?: ApiServerOptions['initial']
  /** Whether the state includes the simulated instances, so that they are kept between runs. */
  readonly keepsInstances?: boolean
  /** Version of Kubernetes; default `v1.34.1`. Scheduler and kubelets follow its minor. */
  readonly gitVersion?: string
  readonly controllers?: Partial<ControllerSettings>
  readonly scheduler?: Partial<SchedulerSettings>
  readonly kubelets?: Partial<KubeletSettings>
  /** See {@link ApiServerOptions.recordsOwners}. */
  readonly recordsOwners?: boolean
  /** See {@link ApiServerOptions.checksPods}. */
  readonly checksPods?: boolean
  /** See {@link ApiServerOptions.featureGates}. */
  readonly featureGates?: ApiServerOptions['featureGates']
  /** See {@link ApiServerOptions.callWebhook}. */
  readonly callWebhook?: ApiServerOptions['callWebhook']
  readonly simulator: CloudSimulator<C>
}

/** A running cluster. It opens no socket by itself. */
export interface DevCluster<C extends SimulatedCloud> {
  readonly server: ApiServer
  readonly cloud: C
  readonly kubelets: Kubelets
  /** The API server over HTTP as administrator, without a socket. */
  readonly transport: Transport
  /** Sets the address of the API server; instances only join there. */
  announce(host: string, port: number): void
  /** Stops every part at once; watches end. */
  stop(): void
}

/** Starts every part with the given clock. */
export function startDevCluster<C extends SimulatedCloud>(options: DevClusterOptions<C>): DevCluster<C> {
  const { clock, random, logger, credentials, simulator } = options
  const gitVersion = options.gitVersion ?? 'v1.34.1'
  const minor = minorOf(gitVersion)
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
    ...(options.checksPods !== undefined && { checksPods: options.checksPods }),
    ...(options.featureGates && { featureGates: options.featureGates }),
    ...(options.callWebhook && { callWebhook: options.callWebhook }),
  })
  // In a restored cluster, a user may have deleted these objects.
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
    hasImplicitNames: (isGateOn) => servesImplicitNames(minor, isGateOn),
    settings: {
      resizedRequests: resizedRequests(minor),
      balance: scoredBalance(minor),
      ...options.scheduler,
    },
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
