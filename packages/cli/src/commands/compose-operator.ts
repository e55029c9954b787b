/** Builds an operator for one API server and one provider. */
import {
  createCacheRegistry,
  createEventRecorder,
  createKubeClient,
  fencedTransport,
  type RequestSample,
  type WatchingKubeClient,
} from '@tenon/kube'
import { Operator, type Settings, ThreadDecider } from '@tenon/operator'
import {
  type CloudProvider,
  isProviderSettingError,
  type ProviderModule,
  type ProviderSettingError,
} from '@tenon/provider'
import { type Clock, eventLoopTurns, type Logger, type Random, type Transport } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import { build, version } from '../version.ts'

export interface OperatorPlan {
  readonly provider: ProviderModule
  /** Provider settings, as environment variables. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly transport: Transport
  /** A way of its own for the lease; the same one without it. */
  readonly leaseTransport?: Transport
  /** Whether the cloud may be told to change anything; always, without it. */
  readonly mayAct?: () => boolean
  /** Revision of this program; empty when it is not known. */
  readonly commit?: string
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
  let operator: Operator | undefined
  const onRequest = (sample: RequestSample) => operator?.requests.requested(sample)
  const client = createKubeClient({ ...server, onRequest, ...(rate && { rate }) })
  const leaseClient = createKubeClient({
    ...server,
    ...(plan.leaseTransport && { transport: plan.leaseTransport }),
    onRequest,
    requestTimeoutMs: leaseRequestTimeoutMs,
  })
  // Of its own, so that a burst of events holds up no write that nodes or pods wait for.
  const eventClient = createKubeClient({ ...server, onRequest, ...(rate && { rate: eventRate(rate) }) })
  const events = createEventRecorder({ client: eventClient, clock, logger, random, component: 'karpenter' })
  const registry = createCacheRegistry({ client, clock, logger, random })
  const provider = await createProvider(plan, client, registry, events)
  const decider = new ThreadDecider({ clock, turns: eventLoopTurns, logger })
  operator = new Operator({
    kubernetes: { client, registry, events },
    runtime: { clock, random, logger },
    provider,
    decider,
    settings,
    build: { ...build, commit: plan.commit ?? '' },
  })
  return { operator, leaseClient }
}

function eventRate({
  perSecond,
  burst,
}: NonNullable<OperatorPlan['rate']>): NonNullable<OperatorPlan['rate']> {
  return { perSecond: perSecond / 4, burst: Math.ceil(burst / 4) }
}

async function createProvider(
  plan: OperatorPlan,
  client: WatchingKubeClient,
  registry: ReturnType<typeof createCacheRegistry>,
  events: ReturnType<typeof createEventRecorder>,
): Promise<CloudProvider> {
  const { provider, clock, random, logger, env, mayAct = () => true } = plan
  try {
    return await provider.open({
      env,
      kube: client,
      registry,
      events,
      clock,
      random,
      logger,
      server: plan.server,
      fenced: (transport) => fencedTransport(transport, mayAct),
      userAgent: `tenon/${version}`,
    })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CliError(
      `${isProviderSettingError(cause) ? settingOf(cause, provider) : `${provider.title}: `}${why}`,
      { cause },
    )
  }
}

/** Names the setting that an error is about, unless the message does. */
function settingOf({ variable }: ProviderSettingError, { options }: ProviderModule): string {
  if (variable === undefined) return ''
  const flag = options.find((each) => each.variable === variable)?.flag
  return flag === undefined ? `${variable}: ` : `--${flag} (${variable}): `
}
