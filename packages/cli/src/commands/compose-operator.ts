/** Builds an operator for one API server and one provider. */
import {
  createCacheRegistry,
  createEventRecorder,
  createKubeClient,
  type WatchingKubeClient,
} from '@tenon/kube'
import { Operator, type Settings, ThreadDecider } from '@tenon/operator'
import type { CloudProvider } from '@tenon/provider'
import { type Clock, eventLoopTurns, type Logger, type Random, type Transport } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import { version } from '../version.ts'

export interface OperatorPlan {
  readonly provider: string
  /** Provider settings, as environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly transport: Transport
  /** URL of the API server as this process sees it. */
  readonly server: string
  readonly settings: Settings
  readonly rate?: { readonly perSecond: number; readonly burst: number }
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

export interface ComposedOperator {
  readonly operator: Operator
  /** For the lease alone: it has no rate to wait for, and no patience with a slow server. */
  readonly leaseClient: WatchingKubeClient
}

/** Of requests about the lease, which must not be late. */
const leaseRequestTimeoutMs = 5000

/** @throws CliError naming the setting that is missing or wrong. */
export async function composeOperator(plan: OperatorPlan): Promise<ComposedOperator> {
  const { clock, random, logger, transport, rate, settings } = plan
  const server = { transport, clock, userAgent: `karpenter/${version}` }
  const client = createKubeClient({ ...server, ...(rate && { rate }) })
  const leaseClient = createKubeClient({ ...server, requestTimeoutMs: leaseRequestTimeoutMs })
  const events = createEventRecorder({ client, clock, logger, random, component: 'karpenter' })
  const registry = createCacheRegistry({ client, clock, logger, random })
  const provider = await createProvider(plan, client, registry, events)
  const decider = new ThreadDecider({ clock, turns: eventLoopTurns, logger })
  const operator = new Operator({
    client,
    registry,
    provider,
    events,
    decider,
    clock,
    random,
    logger,
    settings,
  })
  return { operator, leaseClient }
}

async function createProvider(
  plan: OperatorPlan,
  client: WatchingKubeClient,
  registry: ReturnType<typeof createCacheRegistry>,
  events: ReturnType<typeof createEventRecorder>,
): Promise<CloudProvider> {
  const { clock, random, logger, env } = plan
  if (plan.provider === 'kwok') {
    const { KwokProvider } = await import('@tenon/provider-kwok')
    return new KwokProvider({ client, clock, random, logger })
  }
  const { HttpsTransport, openExoscale, readExoscaleOptions } = await import('@tenon/provider-exoscale')
  const options = readExoscaleOptions(env)
  if ('error' in options) throw new CliError(options.error)
  return await openExoscale({
    options: options.ok,
    connect: (endpoint) => new HttpsTransport(endpoint),
    userAgent: `tenon/${version}`,
    kube: client,
    registry,
    events,
    clock,
    random,
    logger,
    clusterEndpoint: options.ok.clusterEndpoint ?? plan.server,
  }).catch((cause: Error) => {
    throw new CliError(`Exoscale: ${cause.message}`, { cause })
  })
}
