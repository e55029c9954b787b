/** Implements the lifecycle of Machines (cluster-api.md 18). */
import { type Node, ownValue, parseDuration, type ResourceType } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { rfc3339 } from '@tenon/runtime'
import { awayMs, hold, type HubParts, isPaused, latest, release } from '../hub-parts.ts'
import { finalizers, type FullMachine, isLeaving } from '../kinds.ts'
import { drainOnce } from './drain.ts'
import type { Infrastructure } from './infrastructure.ts'
import { failureOf, type MachineRecord } from './machine-record.ts'
import { writeMachineStatus } from './machine-status.ts'
import type { NodeIndex } from './node-index.ts'
import { markRevision, markSeen, syncNode } from './node-sync.ts'
import { templateHash } from '../deployments/template.ts'

const excludeFromDrain = 'machine.cluster.x-k8s.io/exclude-node-draining'

export interface MachineParts {
  readonly hub: HubParts
  readonly workload: LocalApi
  readonly infrastructure: Infrastructure
  readonly nodes: NodeIndex
}

/** One pass over a Machine, or over an instance of a MachinePool without Machines. */
export function reconcileMachine(
  parts: MachineParts,
  type: ResourceType<FullMachine>,
  namespace: string,
  name: string,
): number | undefined {
  const { hub, infrastructure } = parts
  const { api } = hub
  const machine = api.get(type, namespace, name)
  if (machine === undefined || isPaused(hub, machine)) return undefined
  const record = infrastructure.meet(type, machine)
  if (hub.settings.isCoreAway) return infrastructure.boot(machine, record) ?? awayMs
  if (isLeaving(machine)) return end(parts, machine, record)
  hold(api, type, machine, finalizers.machine)
  const provideMs = infrastructure.provide(record)
  const provided = latest(api, type, machine)
  if (provided === undefined) return undefined
  const bootMs = infrastructure.boot(provided, record)
  const node = nodeOf(parts, record)
  const { isCurrent, isUpToDate } = revisionOf(hub, provided, node)
  if (node !== undefined && isOwn(parts, record, node)) {
    syncNode(parts.workload, hub.names, provided, node)
    markSeen(parts.workload, hub.names, node.metadata.name)
    markRevision(parts.workload, node.metadata.name, isCurrent)
  }
  writeMachineStatus(hub, provided, record, { node, isUpToDate })
  return soonest([provideMs, bootMs, ...laterOf(hub, record)])
}

function nodeOf({ nodes }: MachineParts, { providerId }: MachineRecord): Node | undefined {
  return providerId === undefined ? undefined : nodes.only(providerId)
}

/** Machines that share a provider ID would take the Node from each other again and again. */
function isOwn({ hub, infrastructure }: MachineParts, record: MachineRecord, node: Node): boolean {
  const marked = ownValue(node.metadata.annotations, hub.names.machine)
  const others = infrastructure.sharing(record.providerId ?? '').filter((other) => other !== record)
  return !others.some(({ name }) => name === marked)
}

/** Milliseconds until changes of a Machine without an event. */
function laterOf({ runtime }: HubParts, record: MachineRecord): readonly number[] {
  const { clock } = runtime
  const failures = record.effects.flatMap((effect) =>
    effect.kind === 'fails' ? [record.sinceMs + effect.afterMs] : [],
  )
  return [record.bootstrapAtMs, ...failures].map((atMs) => atMs - clock.monotonic()).filter((ms) => ms > 0)
}

function soonest(delays: readonly (number | undefined)[]): number | undefined {
  const known = delays.filter((ms) => ms !== undefined)
  return known.length === 0 ? undefined : Math.min(...known)
}

/** Drains the Node, then removes the machine, then deletes the Node. */
function end(parts: MachineParts, machine: FullMachine, record: MachineRecord): number | undefined {
  const { hub, infrastructure } = parts
  const { api, runtime, settings } = hub
  const { type } = record
  const { clock } = runtime
  if (machine.metadata.finalizers?.includes(finalizers.machine) !== true) return undefined
  const node = nodeOf(parts, record)
  const { isUpToDate } = revisionOf(hub, machine, node)
  if (!isDrained(parts, machine, record, node)) {
    writeMachineStatus(hub, machine, record, { node, isUpToDate, end: 'DrainingNode' })
    return settings.drainRetryMs
  }
  const nowMs = clock.monotonic()
  record.drainedAtMs ??= drainedBefore(hub, machine) ?? markDrained(hub, record)
  const leftMs = record.drainedAtMs + record.deletionMs - nowMs
  if (leftMs > 0) {
    const current = latest(api, type, machine)
    if (current !== undefined)
      writeMachineStatus(hub, current, record, { node, isUpToDate, end: 'DeletingInfrastructure' })
    return leftMs
  }
  infrastructure.room.cut(record)
  infrastructure.room.removeNode(record.name)
  release(api, type, machine, finalizers.machine)
  if (latest(api, type, machine) === undefined) infrastructure.forget(record.uid)
  return undefined
}

function isDrained(
  { hub, workload }: MachineParts,
  machine: FullMachine,
  record: MachineRecord,
  node: Node | undefined,
): boolean {
  if (record.drainedAtMs !== undefined || drainedBefore(hub, machine) !== undefined) return true
  if (node === undefined || failureOf(record, hub.runtime.clock.monotonic()) !== undefined) return true
  if (ownValue(machine.metadata.annotations, excludeFromDrain) !== undefined) return true
  const { api, runtime } = hub
  const { clock } = runtime
  const startedAt = machine.status?.deletion?.nodeDrainStartTime
  const { deletion, nodeDrainTimeout = '0' } = machine.spec ?? {}
  const timeoutMs = deletion?.nodeDrainTimeoutSeconds
    ? deletion.nodeDrainTimeoutSeconds * 1_000
    : (parseDuration(nodeDrainTimeout) ?? 0)
  if (startedAt === undefined)
    api.patch(
      record.type,
      record.namespace,
      record.name,
      { status: { deletion: { nodeDrainStartTime: rfc3339(clock.now()) } } },
      'status',
    )
  else if (timeoutMs > 0 && clock.now() - Date.parse(startedAt) >= timeoutMs) return true
  return drainOnce(workload, node)
}

/** The time that an earlier run has stored. */
function drainedBefore({ runtime }: HubParts, { status }: FullMachine): number | undefined {
  const { clock } = runtime
  const at = status?.deletion?.waitForNodeVolumeDetachStartTime
  return at === undefined ? undefined : clock.monotonic() - Math.max(0, clock.now() - Date.parse(at))
}

function markDrained({ api, runtime }: HubParts, { name, namespace, type }: MachineRecord): number {
  const { clock } = runtime
  const waitForNodeVolumeDetachStartTime = rfc3339(clock.now())
  const status = { deletion: { waitForNodeVolumeDetachStartTime } }
  api.patch(type, namespace, name, { status }, 'status')
  return clock.monotonic()
}

/** What the last pass found about a Machine. */
interface Revision {
  /** Whether it matches the MachineDeployment's template. */
  readonly isCurrent: boolean
  /** Also requires the kubelet version of the template; never true if the template has none. */
  readonly isUpToDate: boolean
}

function revisionOf(
  { api, kinds, names }: HubParts,
  { metadata }: FullMachine,
  node: Node | undefined,
): Revision {
  const name = ownValue(metadata.labels, names.deploymentName)
  const deployment = name === undefined ? undefined : api.get(kinds.deployment, metadata.namespace, name)
  // A Machine without a MachineDeployment counts as up to date.
  if (deployment === undefined) return { isCurrent: true, isUpToDate: true }
  const isCurrent = ownValue(metadata.labels, 'machine-template-hash') === templateHash(deployment)
  const version = deployment.spec?.template?.spec?.version
  const found = node?.status?.nodeInfo?.['kubeletVersion']
  return {
    isCurrent,
    isUpToDate: isCurrent && (node === undefined || (version !== undefined && version === found)),
  }
}
