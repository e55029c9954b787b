/** Builds an operator for one API server and one provider. */
import {
  createCacheRegistry,
  createEventRecorder,
  createKubeClient,
  fencedTransport,
  type RequestSample,
} from '@tenon/kube'
import { noEvents, Operator, type Settings, ThreadDecider } from '@tenon/operator'
import {
  type CloudProvider,
  isProviderSettingError,
  type ProviderEnvironment,
  type ProviderKubernetes,
  type ProviderModule,
  type ProviderSettingError,
} from '@tenon/provider'
import { eventLoopTurns, type Runtime, tracedTransport, type Transport } from '@tenon/runtime'
import { CliError } from '../../errors.ts'
import { build, version } from '../../version.ts'

export interface OperatorParts {
  readonly cloud: {
    readonly module: ProviderModule
    /** Provider settings, as environment variables. */
    readonly env: ProviderEnvironment
  }
  readonly api: ApiAccess
  /** Whether requests may change anything in the cloud; default: always. */
  readonly mayAct?: () => boolean
  /** Git revision of this program; empty if unknown. */
  readonly commit?: string
  readonly settings: Settings
  readonly runtime: Runtime
}

interface ApiAccess {
  readonly server: string
  readonly transport: Transport
  readonly rate?: RequestRate
}

interface RequestRate {
  readonly perSecond: number
  readonly burst: number
}

/** @throws CliError naming the setting that is missing or invalid. */
export async function composeOperator(parts: OperatorParts): Promise<Operator> {
  const { api, settings, runtime } = parts
  const { rate } = api
  const { clock, random, logger, tracer } = runtime
  const transport = tracedTransport(api.transport, tracer, api.server)
  const server = { transport, clock, userAgent: `karpenter/${version}` }
  let operator: Operator | undefined
  const onRequest = (sample: RequestSample) => operator?.requests.requested(sample)
  const client = createKubeClient({ ...server, onRequest, ...(rate && { rate }) })
  // A client of its own, so that a burst of events delays no write of nodes or pods.
  const eventClient = createKubeClient({ ...server, onRequest, ...(rate && { rate: eventRate(rate) }) })
  const events = settings.observeOnly
    ? noEvents
    : createEventRecorder({ client: eventClient, clock, logger, random, component: 'karpenter' })
  const registry = createCacheRegistry({ client, clock, logger, random })
  const provider = await createProvider(parts, { client, registry, events, server: api.server })
  const decider = new ThreadDecider({ clock, turns: eventLoopTurns, logger })
  operator = new Operator({
    kubernetes: { client, registry, events },
    runtime,
    provider,
    decider,
    settings,
    build: { ...build, commit: parts.commit ?? '' },
  })
  return operator
}

function eventRate({ perSecond, burst }: RequestRate): RequestRate {
  return { perSecond: perSecond / 4, burst: Math.ceil(burst / 4) }
}

async function createProvider(
  { cloud, runtime, mayAct = () => true }: OperatorParts,
  kubernetes: ProviderKubernetes,
): Promise<CloudProvider> {
  const { module, env } = cloud
  try {
    return await module.open({
      env,
      kubernetes,
      cloud: {
        fenced: (transport) => tracedTransport(fencedTransport(transport, mayAct), runtime.tracer),
        userAgent: `tenon/${version}`,
      },
      runtime,
    })
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new CliError(
      `${isProviderSettingError(cause) ? settingOf(cause, module) : `${module.title}: `}${why}`,
      { cause },
    )
  }
}

/** Names the setting that caused an error, unless the message does. */
function settingOf({ variable }: ProviderSettingError, { options }: ProviderModule): string {
  if (variable === undefined) return ''
  const flag = options.find((each) => each.variable === variable)?.flag
  return flag === undefined ? `${variable}: ` : `--${flag} (${variable}): `
}
