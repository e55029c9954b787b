/** Collects what the checks of `tenon preflight` need: cloud, installation, autoscalers. */
import { kinds, type Node, parseResources, type Resources } from '@tenon/api'
import { booleanWords } from '@tenon/api/flags'
import { type AccessReviews, type KubeClient, withDeadline } from '@tenon/kube'
import type { RightsSetting } from '@tenon/operator'
import { isProviderSettingError, type ProviderModule } from '@tenon/provider'
import { type Clock, silentLogger, type Transport } from '@tenon/runtime'
import { autoscalerIn, deploymentKind, type RunningAutoscaler } from '../../source/autoscalers.ts'
import { leaseNameFor } from '../../source/node-pool-selectors.ts'
import { selectorOf } from './checks/node-pools.ts'
import { type Providers, recognizedProvider } from '../../load-provider.ts'
import { version } from '../../version.ts'
import type { Cloud, Installation, PreflightContext } from './check.ts'

/** Flags of the user. */
export interface PreflightSettings {
  /** Of the release. */
  readonly namespace?: string
  /** `NAMESPACE/NAME`. */
  readonly serviceAccount?: string
  readonly replicas?: number
  /** Time limit of each check. */
  readonly limitMs: number
}

export interface PreflightSurroundings {
  readonly transport: Transport
  readonly kube: KubeClient
  readonly access: AccessReviews
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
  readonly providers: Providers
  readonly resolveHost: (host: string) => Promise<void>
}

const usualNamespace = 'kube-system'
const usualLease = 'karpenter-leader-election'
/** As in the values of docs/install.md. */
const usualRequests: Resources = { cpu: 1000, memory: 512 * 2 ** 20 }

/** Does not fail: what cannot be read is reported by the checks that need it. */
export async function openContext(
  { transport, kube, access, clock, env, providers, resolveHost }: PreflightSurroundings,
  settings: PreflightSettings,
  signal: AbortSignal,
): Promise<PreflightContext> {
  const late = () => new Error(`no answer within ${settings.limitMs / 1000} s`)
  const within = <T>(work: (ending: AbortSignal) => Promise<T>) =>
    withDeadline(clock, { ms: settings.limitMs, late, signal }, work)
  const [autoscalers, nodes] = await Promise.all([
    within(async (ending) => (await kube.list(deploymentKind, { signal: ending })).flatMap(found)).catch(
      asError,
    ),
    within((ending) => kube.list(kinds.node, { signal: ending })).catch((): readonly Node[] => []),
  ])
  signal.throwIfAborted()
  const own = autoscalers instanceof Error ? [] : autoscalers.filter(({ kind }) => kind === 'tenon')
  const tenon = own.find(
    ({ namespace }) => settings.namespace === undefined || namespace === settings.namespace,
  )
  const module = providers.chosen ?? (await providerOf(tenon, providers.all, nodes))
  return {
    transport,
    kube,
    access,
    clock,
    resolveHost,
    autoscalers,
    cloud: await cloudOf(module, { env, kube, clock }),
    installation: installationOf(tenon, settings),
  }
}

function found(deployment: Parameters<typeof autoscalerIn>[0]): readonly RunningAutoscaler[] {
  const autoscaler = autoscalerIn(deployment)
  return autoscaler === undefined ? [] : [autoscaler]
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}

async function providerOf(
  tenon: RunningAutoscaler | undefined,
  modules: readonly ProviderModule[],
  nodes: readonly Node[],
): Promise<ProviderModule | undefined> {
  const named = tenon?.kind === 'tenon' ? modules.find(({ name }) => name === tenon.provider) : undefined
  return named ?? (await recognizedProvider(modules, nodes).catch(() => undefined))
}

async function cloudOf(
  module: ProviderModule | undefined,
  deps: Pick<PreflightSurroundings, 'env' | 'kube' | 'clock'>,
): Promise<Cloud> {
  if (module === undefined) return { kind: 'unknown' }
  const preflight = await module.preflight?.()
  if (preflight === undefined) return { kind: 'silent', module }
  try {
    const access = preflight.open({ ...deps, logger: silentLogger, userAgent: `tenon/${version}` })
    return { kind: 'open', module, access }
  } catch (error) {
    if (!isProviderSettingError(error)) throw error
    const { variable, message } = error
    const isNamed = variable === undefined || message.includes(variable)
    return { kind: 'unset', module, message: isNamed ? message : `${variable}: ${message}` }
  }
}

function installationOf(tenon: RunningAutoscaler | undefined, settings: PreflightSettings): Installation {
  const spec = tenon?.deployment.spec
  const requests = spec?.template?.spec?.containers?.[0]?.resources?.requests
  const account =
    settings.serviceAccount ??
    (tenon?.kind === 'tenon' ? `${tenon.namespace}/${tenon.serviceAccount}` : undefined)
  return {
    namespace: settings.namespace ?? tenon?.namespace ?? usualNamespace,
    leaseName: leaseNameFor(usualLease, selectorOf(tenon)),
    replicas: settings.replicas ?? spec?.replicas ?? 1,
    requests: tenon === undefined ? usualRequests : parseResources(requests ?? {}),
    settings: settingsOf(tenon),
    isRepairing: repairsNodes(tenon),
    ...(account !== undefined && { serviceAccount: account }),
  }
}

function repairsNodes(tenon: RunningAutoscaler | undefined): boolean {
  const gates = tenon?.kind === 'tenon' ? tenon.setting('feature-gates', 'FEATURE_GATES') : ''
  return /NodeRepair\s*=\s*(?:true|t|1)\b/i.test(gates)
}

/** The settings of the running controller, or the defaults of the chart. */
function settingsOf(tenon: RunningAutoscaler | undefined): ReadonlySet<RightsSetting> {
  const setting = tenon?.kind === 'tenon' ? tenon.setting : () => ''
  const gates = setting('feature-gates', 'FEATURE_GATES')
  const compatibility = setting('compatibility', 'COMPATIBILITY')
  const readsAutoscalers =
    compatibility !== 'karpenter' && !/^false$/i.test(setting('vpa-predictions', 'VPA_PREDICTIONS'))
  return new Set<RightsSetting>([
    ...(/PlannedPlacement=false/i.test(gates) ? [] : (['plannedPlacement'] as const)),
    ...(hasBuffers(gates, compatibility) ? (['capacityBuffer'] as const) : []),
    ...(hasGroups(gates, compatibility) ? (['groupScheduling'] as const) : []),
    ...(readsDevices(setting('ignore-dra-requests', 'IGNORE_DRA_REQUESTS'), compatibility)
      ? (['dynamicResources'] as const)
      : []),
    ...(compatibility === 'karpenter' ? [] : (['capacityQuota'] as const)),
    ...(booleanWords.get(setting('metrics-secure', 'METRICS_SECURE')) === true
      ? (['secureMetrics'] as const)
      : []),
    ...(surges(setting('surge-on-drain', 'SURGE_ON_DRAIN'), compatibility)
      ? (['surgeOnDrain'] as const)
      : []),
    ...(compatibility !== 'karpenter' &&
    booleanWords.get(setting('pod-deletion-cost', 'POD_DELETION_COST')) === true
      ? (['podDeletionCost'] as const)
      : []),
    ...(readsAutoscalers ? (['vpaPredictions'] as const) : []),
  ])
}

function readsDevices(isIgnored: string, compatibility: string): boolean {
  const value = booleanWords.get(isIgnored)
  return value === undefined ? compatibility !== 'karpenter' : !value
}

function surges(value: string, compatibility: string): boolean {
  return compatibility !== 'karpenter' && (value === 'auto' || booleanWords.get(value) === true)
}

function hasBuffers(gates: string, compatibility: string): boolean {
  return compatibility === 'karpenter'
    ? /CapacityBuffer=true/i.test(gates)
    : !/CapacityBuffer=false/i.test(gates)
}

function hasGroups(gates: string, compatibility: string): boolean {
  return compatibility !== 'karpenter' && !/GroupScheduling=false/i.test(gates)
}
