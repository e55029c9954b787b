/** `tenon up --mode cluster-autoscaler`: scales node groups in one process. */
import { resolve } from 'node:path'
import { capacityQuotaCrd } from '@tenon/api'
import { readOptions, runAutoscaler } from '@tenon/cluster-autoscaler'
import {
  eventLoopTurns,
  type HttpHandler,
  JsonLogger,
  oneChunk,
  SystemClock,
  SystemRandom,
} from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { parseManifests, readManifests } from '../../manifests.ts'
import { builtInProviders } from '../../providers.ts'
import { applyManifests } from '../../embedded/apply.ts'
import { aligned, startCluster } from '../../embedded/cluster.ts'
import { display } from '../../embedded/display.ts'
import { figuresOf } from '../../embedded/figures.ts'
import { simulatedCloud } from '../../embedded/simulated-cloud.ts'
import { version } from '../../version.ts'
import { servePage } from '../console/serve.ts'
import { openTracing } from '../controller/tracing.ts'
import type { UpOptions } from './run.ts'

/** Faster than the defaults: nobody waits ten minutes in a demonstration. */
const pace = [
  '--leader-elect=false',
  '--scale-down-delay-after-add=30s',
  '--scale-down-unneeded-time=30s',
  '--scale-down-unready-time=1m',
]

/** Runs until it is told to stop. */
export async function runUpClusterAutoscaler(io: Io, options: UpOptions): Promise<void> {
  const cloud = await simulatedCloud(options.provider, io.cwd)
  const { nodeGroups } = cloud.simulator
  const openModule = cloud.module.nodeGroups
  const clouds = builtInProviders.flatMap(({ name, nodeGroups: has }) => (has ? [name] : [])).join(' or ')
  if (nodeGroups === undefined || openModule === undefined)
    throw new CliError(
      `--mode=cluster-autoscaler: the simulator of ${cloud.title} has no node groups; use ${clouds}`,
    )
  const warn = (message: string) => io.err(`warning: ${message}\n`)
  const given = await readManifests(options.filename, io.cwd, warn)
  const manifests = given.length === 0 ? parseManifests('demonstration', nodeGroups.demonstration) : given
  const clock = new SystemClock()
  const random = new SystemRandom()
  const logger = new JsonLogger(clock, io.err, { value: 'error' })
  const tracing = await openTracing(
    io.env,
    { serviceName: 'tenon-cluster-autoscaler', instance: 'tenon-up' },
    { clock, random, logger: new JsonLogger(clock, io.err, { value: 'warn' }) },
  )
  let pages: HttpHandler = () =>
    Promise.resolve({ status: 503, headers: { 'content-type': 'text/plain' }, body: oneChunk('starting\n') })
  const extra: HttpHandler = (request, signal) => pages(request, signal)
  const ports = { ...options, nodeGroups: true }
  const running = await startCluster(io, cloud, ports, { clock, random, logger }, extra)
  let page: Awaited<ReturnType<typeof servePage>> | undefined
  try {
    const quotas = { object: capacityQuotaCrd as never, source: 'tenon crds' }
    await applyManifests(running.cluster, [quotas], clock)
    if (options.apply) await applyManifests(running.cluster, manifests, clock, warn)
    const { name, nodeGroupsCloud = name } = cloud.module
    const flags = [...nodeGroups.specs.map((spec) => `--nodes=${spec}`), ...pace]
    const read = readOptions(flags, [nodeGroupsCloud])
    if (read.kind !== 'options')
      throw new CliError(`the flags of the demonstration are refused: ${flags.join(' ')}`)
    const { transport } = running.cluster
    const scaling = runAutoscaler(
      {
        options: read.autoscaler,
        process: read.process,
        warnings: read.warnings,
        cloud: await openModule(),
        env: running.settings,
        kubernetes: { transport, server: running.apiUrl },
        serve: (handler) => {
          pages = handler
          return Promise.resolve({ port: 0, url: '', close: () => Promise.resolve() })
        },
        identity: 'tenon-up',
        userAgent: `tenon/${version}`,
        clock,
        random,
        turns: eventLoopTurns,
        logger,
        tracer: tracing?.tracer,
      },
      io.interrupted,
    )
    page = await servePage(io, {
      source: { kubeconfig: resolve(io.cwd, running.kubeconfig) },
      port: 0,
      clock,
      random,
      onLink: (link) => {
        if (!io.isTerminal) io.out(`console    ${link}\n`)
      },
    })
    const header = aligned([
      ['console', `${page.link}    (opens once)`],
      ['Kubernetes API', running.apiUrl],
      ['kubeconfig', `${running.kubeconfig}    (export KUBECONFIG=${running.kubeconfig})`],
      ...running.whereabouts,
      ...(nodeGroups.specs.length === 0 ? [] : [['node groups', nodeGroups.specs.join('  ')] as const]),
    ])
    if (!io.isTerminal) io.out(`${header}\n`)
    const showing = display(
      io,
      clock,
      () => header,
      () => figuresOf(running.cluster),
      io.interrupted,
    )
    await Promise.race([scaling, showing])
    await scaling
  } finally {
    await page?.close()
    await tracing?.close()
    await running.stop()
  }
}
