import { resolve } from 'node:path'
import { kinds } from '@tenon/api'
import type { ConsoleServer } from '@tenon/console'
import { metricsHandler, type Operator, probesHandler } from '@tenon/operator'
import type { GuidedTour } from '@tenon/provider'
import {
  type Clock,
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  JsonLogger,
  oneChunk,
  rfc3339Micro,
  SystemClock,
  SystemRandom,
} from '@tenon/runtime'
import { allCrds } from '../../crds.ts'
import { applyManifests } from '../../embedded/apply.ts'
import { aligned, type ClusterPorts, type RunningCluster, startCluster } from '../../embedded/cluster.ts'
import { display } from '../../embedded/display.ts'
import { figuresOf } from '../../embedded/figures.ts'
import { type ChosenCloud, simulatedCloud } from '../../embedded/simulated-cloud.ts'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { leaderAnnotations, leaseName } from '../../leader-annotations.ts'
import { parseManifests, readManifests } from '../../manifests.ts'
import { providerDefaults } from '../../options/read.ts'
import { servePage } from '../console/serve.ts'
import { composeOperator } from '../controller/compose-operator.ts'
import { decisionSettings } from '../controller/options.ts'
import { cataloguePage, controllerPages, snapshotPage } from '../controller/pages.ts'
import { openTracing } from '../controller/tracing.ts'
import { demoPace, playDemo } from './demo/demo.ts'
import { Narrator } from './demo/narrator.ts'

export interface UpOptions extends ClusterPorts {
  /** A built-in cloud, a module file or a package; absent: the default cloud. */
  readonly provider?: string
  readonly filename: readonly string[]
  readonly apply: boolean
  /** Options of `tenon controller` that say how it decides. */
  readonly controllerArgs: readonly string[]
  /** Which autoscaler to run. */
  readonly mode?: 'nodepools' | 'cluster-autoscaler'
  /** Plays the guided demonstration and exits. */
  readonly demo?: boolean
  /** Milliseconds between two chapters of the demonstration. */
  readonly pause: number
}

/** `tenon up`: runs a cluster and its autoscaler in one process until it is told to stop. */
export async function runUp(io: Io, options: UpOptions): Promise<void> {
  const isDemo = options.demo === true
  if (isDemo && (options.filename.length > 0 || options.dataDir !== undefined))
    throw new CliError('--demo uses its own manifests in a new cluster: remove --filename and --data-dir')
  const cloud = await simulatedCloud(options.provider, io.cwd)
  const { tour } = cloud.simulator
  if (isDemo && tour === undefined)
    throw new CliError(`--demo: the simulator of ${cloud.title} has no tour; remove --demo`)
  const settings = decisionSettings(options.controllerArgs)
  // Invalid manifests are reported before anything starts.
  const warn = (message: string) => io.err(`warning: ${message}\n`)
  const given = await readManifests(options.filename, io.cwd, warn)
  const manifests =
    given.length === 0 ? parseManifests('demonstration', cloud.simulator.demonstration) : given
  const clock = new SystemClock()
  const random = new SystemRandom()
  const logger = new JsonLogger(clock, io.err, { value: 'error' })
  const tracing = await openTracing(
    io.env,
    { serviceName: 'tenon', instance: 'tenon-up' },
    { clock, random, logger: new JsonLogger(clock, io.err, { value: 'warn' }) },
  )
  let operator: Operator | undefined
  let served: ConsoleServer | undefined
  const extra: HttpHandler = (request, signal) => operatorPages(operator, request, signal)
  const ports = { ...options, isHurried: isDemo }
  const running = await startCluster(io, cloud, ports, { clock, random, logger }, extra)
  try {
    const crds = (await allCrds(cloud.providers)).map((crd) => ({
      object: crd as never,
      source: 'tenon crds',
    }))
    await applyManifests(running.cluster, crds, clock)
    if (options.apply && !isDemo) await applyManifests(running.cluster, manifests, clock, warn)
    operator = await composeOperator({
      cloud: {
        module: cloud.module,
        env: { ...providerDefaults(cloud.module.options), ...running.settings },
      },
      api: { server: running.apiUrl, transport: running.cluster.transport },
      settings: { ...settings, ...(isDemo && demoPace), brakeNamespace: 'kube-system' },
      runtime: { clock, random, logger, tracer: tracing?.tracer },
    })
    await operator.observe(io.interrupted)
    operator.lead()
    if (running.pagesUrl !== undefined) announceLeader(running.cluster, running.pagesUrl, clock)
    const page = await servePage(io, {
      source: { kubeconfig: resolve(io.cwd, running.kubeconfig) },
      port: 0,
      clock,
      random,
      onLink: (link) => {
        if (!io.isTerminal) io.out(`console    ${link}\n`)
      },
    })
    served = page
    const header = () =>
      aligned([
        ['console', `${page.link}    (opens once)`],
        ['Kubernetes API', running.apiUrl],
        ['kubeconfig', `${running.kubeconfig}    (export KUBECONFIG=${running.kubeconfig})`],
        ...running.whereabouts,
      ])
    if (isDemo && tour !== undefined)
      return await demonstrate({
        io,
        asked: options.provider ?? '',
        pauseMs: options.pause,
        running,
        cloud,
        tour,
        clock,
        header: header(),
      })
    if (!io.isTerminal) io.out(`${header()}\n`)
    await display(io, clock, header, () => figuresOf(running.cluster), io.interrupted)
  } finally {
    await served?.close()
    await operator?.stop()
    await tracing?.close()
    await running.stop()
  }
}

/**
 * Writes the annotations by which other commands find this process. It leads without an election, so nobody
 * renews this lease.
 */
function announceLeader({ server }: RunningCluster['cluster'], url: string, clock: Clock): void {
  const identity = 'tenon up'
  const key = { namespace: 'kube-system', name: leaseName }
  const annotations = { [leaderAnnotations.leader]: identity, [leaderAnnotations.url]: url }
  const spec = { holderIdentity: identity, leaseDurationSeconds: 15, renewTime: rfc3339Micro(clock.now()) }
  const { local } = server
  if (local.get(kinds.lease, key.namespace, key.name) === undefined)
    local.create(kinds.lease, {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { ...key, annotations },
      spec,
    })
  else local.patch(kinds.lease, key.namespace, key.name, { metadata: { annotations }, spec })
}

interface Demonstration {
  readonly io: Io
  /** The value of `--provider`; empty for the default. */
  readonly asked: string
  readonly pauseMs: number
  readonly running: RunningCluster
  readonly cloud: ChosenCloud
  readonly tour: GuidedTour
  readonly clock: Clock
  readonly header: string
}

async function demonstrate(demonstration: Demonstration): Promise<void> {
  const { asked, io, pauseMs, running, cloud, tour, clock, header } = demonstration
  const { cluster } = running
  const narrator = new Narrator(io)
  narrator.say(`Tenon scales a cluster up and down on a simulated ${cloud.title}, in about two minutes.`)
  narrator.say('Waiting times are shortened. Ctrl-C stops it. To watch from another terminal:')
  narrator.quote(header)
  try {
    await playDemo({
      cluster,
      tour,
      nodeClasses: cloud.module.nodeClasses,
      apply: (yaml) => applyManifests(cluster, parseManifests('demonstration', yaml), clock),
      clock,
      narrator,
      pauseMs,
      again: asked === '' ? 'npm start' : `npm start -- --provider ${asked}`,
      signal: io.interrupted,
    })
  } catch (error) {
    narrator.clear()
    if (!io.interrupted.aborted) throw error
  }
}

function snapshotPages(operator: Operator): HttpHandler {
  const snapshot = snapshotPage({
    operator,
    identity: 'up',
    isLeading: () => true,
    clock: new SystemClock(),
  })
  return controllerPages(
    { value: 'error' },
    { snapshot, catalogue: cataloguePage({ operator, provider: operator.provider }) },
  )
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
  const handler = isForMetrics ? metricsHandler(operator, snapshotPages(operator)) : probesHandler(operator)
  return handler(request, signal)
}
