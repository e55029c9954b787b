/** `tenon preflight`: checks whether Tenon can be installed or upgraded in a cluster. It changes nothing. */
import { lookup } from 'node:dns/promises'
import { createAccessReviews, createKubeClient } from '@tenon/kube'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { onCluster } from '../../kubectl/connection.ts'
import type { ClusterFlags } from '../../kubectl/flags.ts'
import { loadProviders } from '../../load-provider.ts'
import { type NodeGroupFlags, withCloud } from '../../source/node-group-cloud.ts'
import { version } from '../../version.ts'
import { statusOf } from './check.ts'
import { runGroupPreflight } from './cluster-autoscaler.ts'
import { openContext } from './open-context.ts'
import { type PreflightFormat, render } from './render.ts'
import { checks, runChecks, wantedChecks } from './run-checks.ts'

export interface PreflightFlags extends ClusterFlags, NodeGroupFlags {
  /** What will add and remove nodes. */
  readonly mode: 'nodepools' | 'cluster-autoscaler'
  readonly namespace?: string
  readonly provider?: string
  readonly serviceAccount?: string
  readonly replicas?: number
  readonly skip: readonly string[]
  /** Milliseconds. */
  readonly timeout: number
  readonly output: PreflightFormat
}

/**
 * Runs the checks and prints the results.
 * @returns 1 if one failed, else 0.
 * @throws CliError if there is no cluster to check.
 */
export async function runPreflight(io: Io, flags: PreflightFlags): Promise<0 | 1> {
  const { skip, timeout: limitMs, output } = flags
  const wanted = flags.mode === 'nodepools' ? wantedChecks(checks, skip) : []
  const settings = settingsOf(flags)
  const providers = await loadProviders(flags.provider ?? io.env['TENON_PROVIDER'] ?? '', io.cwd)
  return await onCluster(io, flags, async ({ config, clock }) => {
    const { transport } = config
    const server = { transport, clock, userAgent: `tenon/${version}`, requestTimeoutMs: limitMs }
    const resolveHost = async (host: string) => {
      await lookup(host)
    }
    const client = createKubeClient(server)
    const surroundings = {
      transport,
      kube: client,
      access: createAccessReviews(server),
      clock,
      env: io.env,
      providers,
      resolveHost,
    }
    const context = await openContext(surroundings, settings, io.interrupted)
    const results =
      flags.mode === 'nodepools'
        ? await runChecks(wanted, context, limitMs, io.interrupted)
        : await runGroupPreflight({
            io,
            flags: withCloud(flags),
            settings,
            skip,
            context,
            client,
            server: config.server,
          })
    io.out(render(results, output))
    return results.some((result) => statusOf(result) === 'fail') ? 1 : 0
  })
}

function settingsOf({ namespace, serviceAccount, replicas, timeout }: PreflightFlags) {
  if (serviceAccount !== undefined && !/^[^/]+\/[^/]+$/.test(serviceAccount))
    throw new CliError(`--service-account ${serviceAccount}: write NAMESPACE/NAME`)
  return {
    limitMs: timeout,
    ...(namespace !== undefined && { namespace }),
    ...(serviceAccount !== undefined && { serviceAccount }),
    ...(replicas !== undefined && { replicas }),
  }
}
