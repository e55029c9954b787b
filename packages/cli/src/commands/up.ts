import { metricsHandler, type Operator, probesHandler, defaultSettings } from '@tenon/operator'
import {
  type Clock,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  JsonLogger,
  oneChunk,
  SystemClock,
  SystemRandom,
  type Transport,
} from '@tenon/runtime'
import { exoscale } from '@tenon/provider-exoscale/module'
import { CliError } from '../errors.ts'
import type { Io } from '../io.ts'
import { parseManifests, readManifests } from '../manifests.ts'
import { allCrds } from './crds.ts'
import { composeOperator } from './compose-operator.ts'
import { applyManifests } from '../up/apply.ts'
import { type ClusterPorts, demoCloud, startCluster, type RunningCluster } from '../up/cluster.ts'
import { demoPace, playDemo } from '../up/demo/demo.ts'
import { Narrator } from '../up/demo/narrator.ts'
import { demonstration } from '../up/demonstration.ts'
import { display } from '../up/display.ts'
import { figuresOf } from '../up/figures.ts'

export interface UpOptions extends ClusterPorts {
  readonly filename: readonly string[]
  readonly apply: boolean
  /** Plays the guided demonstration and ends. */
  readonly demo?: boolean
  /** Milliseconds between two chapters of the demonstration. */
  readonly pause: number
}

/** `tenon up`: the whole cluster and its autoscaler in one process, until it is asked to end. */
export async function runUp(io: Io, options: UpOptions): Promise<void> {
  const isDemo = options.demo === true
  if (isDemo && (options.filename.length > 0 || options.dataDir !== undefined))
    throw new CliError(
      '--demo brings its own manifests into a new cluster: leave out --filename and --data-dir',
    )
  // Bad manifests are told before anything starts.
  const warn = (message: string) => io.err(`warning: ${message}\n`)
  const given = await readManifests(options.filename, io.cwd, warn)
  const manifests = given.length === 0 ? parseManifests('demonstration', demonstration) : given
  const clock = new SystemClock()
  const random = new SystemRandom()
  const logger = new JsonLogger(clock, io.err, { value: 'error' })
  let operator: Operator | undefined
  const extra: HttpHandler = (request, signal) => operatorPages(operator, request, signal)
  const ports = isDemo ? { ...options, cloudSettings: demoPace.cloud } : options
  const running = await startCluster(io, ports, { clock, random, logger }, extra)
  try {
    const crds = (await allCrds()).map((crd) => ({ object: crd as never, source: 'tenon crds' }))
    await applyManifests(running.cluster, running.adminToken, crds, clock)
    if (options.apply && !isDemo)
      await applyManifests(running.cluster, running.adminToken, manifests, clock, warn)
    const composed = await composeOperator({
      provider: exoscale,
      env: providerSettings(running),
      transport: inProcess(running),
      server: running.apiUrl,
      settings: isDemo ? { ...defaultSettings, ...demoPace.settings } : defaultSettings,
      clock,
      random,
      logger,
    })
    operator = composed.operator
    await operator.observe(io.interrupted)
    operator.lead()
    const header = [
      `Kubernetes API      ${running.apiUrl}`,
      `kubeconfig          ${running.kubeconfig}    (export KUBECONFIG=${running.kubeconfig})`,
      `simulated Exoscale  ${running.cloudUrl}`,
    ].join('\n')
    if (isDemo) return await demonstrate(io, options, running, clock, header)
    if (!io.isTerminal) io.out(`${header}\n`)
    await display(io, clock, header, () => figuresOf(running.cluster), io.interrupted)
  } finally {
    await operator?.stop()
    await running.stop()
  }
}

async function demonstrate(
  io: Io,
  { pause }: UpOptions,
  running: RunningCluster,
  clock: Clock,
  header: string,
): Promise<void> {
  const { cluster, adminToken } = running
  const narrator = new Narrator(io)
  narrator.say('Tenon grows and shrinks a cluster on a simulated Exoscale, in about two minutes.')
  narrator.say('Waiting times are shortened. Ctrl-C ends it. To look on from another terminal:')
  narrator.quote(header)
  try {
    await playDemo({
      cluster,
      apply: (yaml) => applyManifests(cluster, adminToken, parseManifests('demonstration', yaml), clock),
      clock,
      narrator,
      pauseMs: pause,
      signal: io.interrupted,
    })
  } catch (error) {
    narrator.clear()
    if (!io.interrupted.aborted) throw error
  }
}

function providerSettings(running: RunningCluster): Readonly<Record<string, string>> {
  return {
    EXOSCALE_API_ENDPOINT: running.cloudUrl,
    EXOSCALE_ZONE: demoCloud.zone,
    EXOSCALE_SKS_CLUSTER_ID: demoCloud.clusterId,
    EXOSCALE_API_KEY: demoCloud.key,
    EXOSCALE_API_SECRET: demoCloud.secret,
    CLUSTER_ENDPOINT: running.apiUrl,
  }
}

/** The operator shares the process with the API server: its requests need no socket. */
function inProcess({ cluster, adminToken }: RunningCluster): Transport {
  const authorization = `Bearer ${adminToken.reveal()}`
  return {
    send: (request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> =>
      cluster.server.handle({ ...request, headers: { ...request.headers, authorization } }, signal),
  }
}

function operatorPages(
  operator: Operator | undefined,
  request: HttpRequest,
  signal?: AbortSignal,
): Promise<HttpResponse> {
  if (operator === undefined) {
    return Promise.resolve({
      status: 503,
      headers: { 'content-type': 'text/plain' },
      body: oneChunk('starting\n'),
    })
  }
  const isForMetrics = ['/metrics', '/debug'].some((path) => request.path.startsWith(path))
  const handler = isForMetrics ? metricsHandler(operator) : probesHandler(operator)
  return handler(request, signal)
}
