/** Marks unhealthy Machines for their owners to replace. */
import {
  type Condition,
  conditionOf,
  kinds as coreKinds,
  matchesSelector,
  type Node,
  parseDuration,
} from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { rfc3339 } from '@tenon/runtime'
import { type HubParts, isPaused } from '../hub-parts.ts'
import { type FullMachine, isLeaving, type MachineHealthCheck } from '../kinds.ts'

/** Conditions of a Machine. The MachineSet deletes a Machine with the second one False. */
export const healthCheckSucceeded = 'HealthCheckSucceeded'
export const ownerRemediated = 'OwnerRemediated'

const defaultStartupMs = 10 * 60_000

interface Check {
  readonly startupMs: number
  readonly conditions: readonly {
    readonly type: string
    readonly status: string
    readonly timeoutMs: number
  }[]
}

function checkOf({ spec }: MachineHealthCheck): Check {
  const { checks, nodeStartupTimeout = '', unhealthyConditions = [] } = spec ?? {}
  const startupMs =
    checks?.nodeStartupTimeoutSeconds === undefined
      ? (parseDuration(nodeStartupTimeout) ?? defaultStartupMs)
      : checks.nodeStartupTimeoutSeconds * 1_000
  const conditions = [
    ...unhealthyConditions.map(({ timeout, ...condition }) => ({
      ...condition,
      timeoutMs: parseDuration(timeout) ?? 0,
    })),
    ...(checks?.unhealthyNodeConditions ?? []).map(({ timeoutSeconds, ...condition }) => ({
      ...condition,
      timeoutMs: timeoutSeconds * 1_000,
    })),
  ]
  return { startupMs, conditions }
}

/** One pass over a MachineHealthCheck. Returns in how many milliseconds the next timeout is due. */
export function reconcileHealthCheck(
  parts: HubParts,
  workload: LocalApi,
  namespace: string,
  name: string,
): number | undefined {
  const { api, kinds, runtime } = parts
  const healthCheck = api.get(kinds.healthCheck, namespace, name)
  if (healthCheck === undefined || isPaused(parts, healthCheck)) return undefined
  const check = checkOf(healthCheck)
  const nowMs = runtime.clock.now()
  let nextMs: number | undefined
  for (const machine of api.list(kinds.machine, { namespace })) {
    const isMeant =
      machine.spec?.clusterName === healthCheck.spec?.clusterName &&
      matchesSelector(healthCheck.spec?.selector, machine.metadata.labels)
    if (!isMeant || isLeaving(machine)) continue
    const nodeName = machine.status?.nodeRef?.name
    const node = nodeName === undefined ? undefined : workload.get(coreKinds.node, undefined, nodeName)
    const dueAtMs = unhealthyAtMs(check, machine, node, nowMs)
    const isHealthy = dueAtMs === undefined || dueAtMs > nowMs
    mark(parts, machine, isHealthy)
    if (isHealthy && dueAtMs !== undefined) nextMs = Math.min(nextMs ?? dueAtMs, dueAtMs)
  }
  return nextMs === undefined ? undefined : nextMs - nowMs
}

/** When a Machine becomes unhealthy, or became so; undefined if nothing is wrong with it. */
function unhealthyAtMs(
  { conditions, startupMs }: Check,
  { metadata, status }: FullMachine,
  node: Node | undefined,
  nowMs: number,
): number | undefined {
  if (status?.phase === 'Failed') return nowMs
  if (status?.nodeRef?.name === undefined) return Date.parse(metadata.creationTimestamp ?? '') + startupMs
  if (node === undefined) return nowMs
  const dueAt = conditions.flatMap(({ type, status: unhealthy, timeoutMs }) => {
    const found = node.status?.conditions?.find((condition) => condition.type === type)
    return found?.status === unhealthy ? [Date.parse(found.lastTransitionTime ?? '') + timeoutMs] : []
  })
  return dueAt.length === 0 ? undefined : Math.min(...dueAt)
}

function mark({ api, kinds, runtime }: HubParts, machine: FullMachine, isHealthy: boolean): void {
  const status = isHealthy ? 'True' : 'False'
  if (conditionOf(machine, healthCheckSucceeded)?.status === status) return
  const { generation = 0, name, namespace } = machine.metadata
  const condition = (type: string, reason: string): Condition => ({
    type,
    status,
    reason,
    message: '',
    observedGeneration: generation,
    lastTransitionTime: rfc3339(runtime.clock.now()),
  })
  const others = (machine.status?.conditions ?? []).filter(
    ({ type }) => type !== healthCheckSucceeded && type !== ownerRemediated,
  )
  const conditions = [
    ...others,
    condition(healthCheckSucceeded, isHealthy ? 'HealthCheckSucceeded' : 'UnhealthyNode'),
    // The owner has to replace it.
    ...(isHealthy ? [] : [condition(ownerRemediated, 'WaitingForRemediation')]),
  ]
  api.patch(kinds.machine, namespace, name, { status: { conditions } }, 'status')
}
