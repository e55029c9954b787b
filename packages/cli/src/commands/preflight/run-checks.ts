/** Runs checks concurrently, each with a time limit. A check that throws has failed. */
import { isKubeError, withDeadline } from '@tenon/kube'
import { CliError } from '../../errors.ts'
import type { Check, CheckOutcome, CheckResult, PreflightContext } from './check.ts'
import { clockSkew } from './checks/clock-skew.ts'
import { cloudDns, cloudRights, credentials } from './checks/cloud.ts'
import { crds } from './checks/crds.ts'
import { disruptionBudgets } from './checks/disruption-budgets.ts'
import { identity } from './checks/identity.ts'
import { nodePoolSelectors } from './checks/node-pools.ts'
import { nodeRepair } from './checks/node-repair.ts'
import { otherAutoscalers } from './checks/other-autoscalers.ts'
import { rights } from './checks/rights.ts'
import { room } from './checks/room.ts'
import { serverVersion } from './checks/server-version.ts'
import { webhooks } from './checks/webhooks.ts'

/** @returns results in the order of the checks. */
export async function runChecks(
  checks: readonly Check[],
  context: PreflightContext,
  limitMs: number,
  signal: AbortSignal,
): Promise<readonly CheckResult[]> {
  return await Promise.all(checks.map((check) => runCheck(check, context, limitMs, signal)))
}

async function runCheck(
  { name, run }: Check,
  context: PreflightContext,
  limitMs: number,
  signal: AbortSignal,
): Promise<CheckResult> {
  const { clock } = context
  const start = clock.monotonic()
  const late = () => new LateError(`no answer within ${limitMs / 1000} s`)
  let outcome: CheckOutcome
  try {
    outcome = await withDeadline(clock, { ms: limitMs, late, signal }, (ending) => run(context, ending))
  } catch (error) {
    signal.throwIfAborted()
    outcome = failure(error)
  }
  return { name, ...outcome, durationMs: clock.monotonic() - start }
}

class LateError extends Error {}

function failure(error: unknown): CheckOutcome {
  const message = error instanceof Error ? error.message : String(error)
  if (error instanceof LateError)
    return failed(
      message,
      'check that the API server and the cloud can be reached from here, or raise --timeout',
    )
  if (isKubeError(error, 'forbidden', 'unauthorized'))
    return failed(message, 'run preflight as a user who may read the cluster, such as an administrator')
  if (isKubeError(error))
    return failed(
      message,
      'check that the kubeconfig leads to the API server of the cluster, and not to another program',
    )
  return failed(
    `the answer cannot be understood: ${message}`,
    'check that the kubeconfig leads to the API server of the cluster, and not to another program',
  )
}

function failed(message: string, fix: string): CheckOutcome {
  return { summary: '', findings: [{ status: 'fail', message, fix }] }
}

/** @throws CliError if `--skip` names a check that there is not. */
export function wantedChecks(all: readonly Check[], skip: readonly string[]): readonly Check[] {
  const unknown = skip.find((name) => !all.some((check) => check.name === name))
  if (unknown !== undefined)
    throw new CliError(`--skip ${unknown}: use one of ${all.map(({ name }) => name).join(', ')}`)
  return all.filter(({ name }) => !skip.includes(name))
}

/** Every check of `tenon preflight` with NodePools, in the order of its report. */
export const checks: readonly Check[] = [
  serverVersion,
  clockSkew,
  identity,
  crds,
  rights,
  credentials,
  cloudRights,
  cloudDns,
  otherAutoscalers,
  nodePoolSelectors,
  webhooks,
  room,
  disruptionBudgets,
  nodeRepair,
]
