/** `tenon preflight --mode cluster-autoscaler`: the checks before `tenon cluster-autoscaler` is started. */
import { kinds } from '@tenon/api'
import type { AccessRight, WatchingKubeClient } from '@tenon/kube'
import { isProviderSettingError, type NodeGroupPreflight } from '@tenon/provider'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import {
  type NodeGroupCloud,
  type NodeGroupFlags,
  type RunningClusterAutoscaler,
  withNodeGroupCloud,
} from '../../source/node-group-cloud.ts'
import type { Check, CheckResult, Cloud, Installation, PreflightContext } from './check.ts'
import { clockSkew } from './checks/clock-skew.ts'
import { cloudDns, cloudRights, credentials } from './checks/cloud.ts'
import { disruptionBudgets } from './checks/disruption-budgets.ts'
import { identity } from './checks/identity.ts'
import { otherGroupScalers } from './checks/other-autoscalers.ts'
import { autoscalerRights, isAllowed } from './checks/rights.ts'
import { serverVersion } from './checks/server-version.ts'
import type { PreflightSettings } from './open-context.ts'
import { runChecks, wantedChecks } from './run-checks.ts'

/** What the checks are made with. */
export interface GroupPreflightRun {
  readonly io: Io
  readonly flags: NodeGroupFlags
  readonly settings: PreflightSettings
  readonly skip: readonly string[]
  /** With the cloud and the installation of the other mode. */
  readonly context: PreflightContext
  readonly client: WatchingKubeClient
  /** URL of the API server. */
  readonly server: string
}

const leaseName = 'cluster-autoscaler'

/**
 * Runs the checks.
 * @throws CliError if the cloud is not known, or a flag of the mode is malformed.
 */
export async function runGroupPreflight({
  io,
  flags,
  settings,
  skip,
  context,
  client,
  server,
}: GroupPreflightRun): Promise<readonly CheckResult[]> {
  const { limitMs } = settings
  const signal = io.interrupted
  const running = runningIn(context, settings)
  const installation = installationOf(running, settings)
  const { serviceAccount } = installation
  // Without a list the checks that need nodes say so.
  const nodes = await client.list(kinds.node, { signal }).catch(() => [])
  signal.throwIfAborted()
  const workload = {
    client,
    server,
    who: serviceAccount === undefined ? 'you' : `service account ${serviceAccount}`,
    isAllowed: (right: AccessRight, ending: AbortSignal) =>
      isAllowed(context.access, right, serviceAccount, ending),
  }
  const { clock } = context
  return await withNodeGroupCloud(
    { io, flags, running, workload, nodes, clock, requestTimeoutMs: limitMs },
    async (groupCloud) => {
      const { cloud, preflight } = openPreflight(groupCloud)
      const ofCloud = cloud.kind === 'silent' ? [] : [credentials, cloudRights, cloudDns]
      const all: readonly Check[] = [
        serverVersion,
        clockSkew,
        identity,
        autoscalerRights,
        ...ofCloud,
        ...(preflight === undefined
          ? [unknownGroups]
          : preflight.checks.map(
              (check): Check => ({ name: check.name, run: (_, ending) => check.run(ending) }),
            )),
        otherGroupScalers,
        disruptionBudgets,
      ]
      const wanted = wantedChecks(all, skip)
      return await runChecks(wanted, { ...context, cloud, installation }, limitMs, signal)
    },
  )
}

/** In place of the checks of node groups, without settings. */
const unknownGroups: Check = {
  name: 'node-groups',
  run: () =>
    Promise.resolve({
      summary: '',
      findings: [{ status: 'warn', message: 'not asked: settings are missing', fix: 'see credentials' }],
    }),
}

function openPreflight({ module, nodeGroups, dependencies }: NodeGroupCloud): {
  readonly cloud: Cloud
  readonly preflight?: NodeGroupPreflight
} {
  try {
    const preflight = nodeGroups.preflight(dependencies)
    const { access } = preflight
    return {
      preflight,
      cloud: access === undefined ? { kind: 'silent', module } : { kind: 'open', module, access },
    }
  } catch (error) {
    if (!isProviderSettingError(error)) throw error
    const { variable, message } = error
    // A malformed flag is one of this command too.
    if (variable === undefined) throw new CliError(message, { cause: error })
    return {
      cloud: {
        kind: 'unset',
        module,
        message: message.includes(variable) ? message : `${variable}: ${message}`,
      },
    }
  }
}

function runningIn(
  { autoscalers }: PreflightContext,
  { namespace }: PreflightSettings,
): RunningClusterAutoscaler | undefined {
  const all = autoscalers instanceof Error ? [] : autoscalers
  return all.find(
    (each): each is RunningClusterAutoscaler =>
      each.kind === 'clusterAutoscaler' && (namespace === undefined || each.namespace === namespace),
  )
}

function installationOf(
  running: RunningClusterAutoscaler | undefined,
  settings: PreflightSettings,
): Installation {
  const account =
    settings.serviceAccount ??
    (running === undefined ? undefined : `${running.namespace}/${running.serviceAccount}`)
  return {
    namespace: settings.namespace ?? running?.namespace ?? 'kube-system',
    leaseName: running?.flag('leader-elect-resource-name').at(-1) ?? leaseName,
    replicas: settings.replicas ?? 1,
    requests: {},
    settings: new Set(),
    isRepairing: false,
    ...(account !== undefined && { serviceAccount: account }),
  }
}
