/** Creates and removes the instances and Nodes of a NodeGroup to match its spec. */
import { kinds, ownValue } from '@tenon/api'
import { type NodeGroup, platformLabels } from '@tenon/provider-clever-cloud'
import { effectOf, errorEndOf, type GroupRecord, isSettled, stayingInstances } from './group-record.ts'
import { type GroupInstance, workerLabels } from './group-instances.ts'
import { earliest, type Platform, usedQuota } from './platform.ts'
import { mostNodes } from './platform-crd.ts'
import { amountOf, isWithin, sumOf } from './quota.ts'
import { drawDelay } from './settings.ts'

/** Time until the next pass for a Node with finalizers, in case no event reports that it is gone. */
const lookAgainMs = 5_000

const numbers = Array.from({ length: mostNodes }, (_, number) => number)

const nodeNameOf = ({ name }: GroupRecord, number: number) => `${name}-node${number}`

/** One pass over the nodes of an accepted group; returns when the next is due. */
export function settleNodes(platform: Platform, group: NodeGroup, record: GroupRecord): number | undefined {
  const nowMs = platform.clock.monotonic()
  grow(platform, group, record)
  shrink(platform, group, record)
  for (const instance of record.instances.values()) {
    if (instance.leavesAtMs !== undefined) leave(platform, record, instance)
    else if (instance.kubelet === undefined) boot(platform, group, record, instance)
    instance.hasJoined ||= platform.host.isReady(instance)
  }
  const areStraysGone = removeStrays(platform, record)
  const errorEndMs = errorEndOf(record, nowMs)
  const isDue = nowMs >= record.syncAtMs && (errorEndMs === undefined || record.isSynced)
  if (isDue && isSettled(record)) record.isSynced = true
  const instances = [...record.instances.values()]
  const due = [...instances.flatMap(({ leavesAtMs, bootsAtMs }) => [leavesAtMs, bootsAtMs]), record.syncAtMs]
  return earliest([
    ...due.filter((atMs) => atMs !== undefined && atMs > nowMs),
    areStraysGone ? undefined : nowMs + lookAgainMs,
  ])
}

/**
 * Removes every instance and deletes every Node of the group, also one that a kubelet has registered under another
 * name: nobody else could, as it has no provider ID. Returns whether all Nodes are gone.
 */
export function clearNodes({ api, host }: Platform, record: GroupRecord): boolean {
  for (const instance of record.instances.values()) host.cut(instance)
  record.instances.clear()
  const own = api
    .list(kinds.node)
    .filter(({ metadata }) => ownValue(metadata.labels, platformLabels.nodeGroup) === record.name)
  const names = [
    ...numbers.map((number) => nodeNameOf(record, number)),
    ...own.map(({ metadata }) => metadata.name),
  ]
  return names.map((name) => host.removeNode(name)).every((isGone) => isGone)
}

/** Cuts the power of a deleted group's instances. */
export function powerOff({ host, settings }: Platform, record: GroupRecord): void {
  for (const instance of record.instances.values()) {
    if (instance.kubelet === undefined) continue
    host.cut(instance)
    if (settings.nodesReportPowerOff) host.reportPowerOff(instance.nodeName)
  }
}

/** Removes instances whose Node was deleted. */
export function cutUnregistered({ host }: Platform, record: GroupRecord): void {
  for (const instance of record.instances.values())
    if (instance.kubelet !== undefined && host.node(instance.nodeName) === undefined) host.cut(instance)
}

/** Continues instances of an earlier run: those with a Node continue, the others boot like new ones. */
export function resumeNodes(platform: Platform, group: NodeGroup, record: GroupRecord): void {
  const { clock, host } = platform
  const isEnding = group.metadata.deletionTimestamp !== undefined
  const there = numbers.filter((number) => host.node(nodeNameOf(record, number)) !== undefined)
  for (const number of there) {
    const instance = addInstance(record, number, clock.monotonic())
    boot(platform, group, record, instance)
    instance.hasJoined = host.isReady(instance)
  }
  const target = isEnding ? 0 : (group.status?.targetNodeCount ?? group.spec.nodeCount)
  addInstances(record, target - there.length, record.nodesAtMs)
}

function grow(platform: Platform, group: NodeGroup, record: GroupRecord): void {
  const { clock, random, settings } = platform
  const { nodeCount } = group.spec
  const more = nodeCount - stayingInstances(record).length
  if (record.refusedCount !== nodeCount) record.refusedCount = undefined
  if (more <= 0 || record.refusedCount !== undefined) return
  if (!isWithin(sumOf([usedQuota(platform), amountOf(record.flavor, more)]), settings.quota)) {
    record.refusedCount = nodeCount
    return
  }
  const laterMs = clock.monotonic() + drawDelay(random, settings.nodeDelay)
  const isResize = record.instances.size > 0 || record.isSynced
  addInstances(record, more, isResize && record.nodesAtMs !== undefined ? laterMs : record.nodesAtMs)
}

function addInstances(record: GroupRecord, count: number, bootsAtMs: number | undefined): void {
  const free = numbers.filter((number) => !record.instances.has(number))
  for (const number of free.slice(0, Math.max(0, count))) addInstance(record, number, bootsAtMs)
}

function addInstance(record: GroupRecord, number: number, bootsAtMs: number | undefined): GroupInstance {
  const instance: GroupInstance = {
    nodeName: nodeNameOf(record, number),
    number,
    flavor: record.flavor,
    bootsAtMs,
    leavesAtMs: undefined,
    kubelet: undefined,
    hasJoined: false,
  }
  record.instances.set(number, instance)
  return instance
}

/** The instances with the highest numbers are removed first. */
function shrink({ clock, random, settings }: Platform, group: NodeGroup, record: GroupRecord): void {
  const staying = stayingInstances(record).toSorted((a, b) => a.number - b.number)
  for (const instance of staying.slice(group.spec.nodeCount))
    instance.leavesAtMs = clock.monotonic() + drawDelay(random, settings.deletionDelay)
}

function leave({ clock, host }: Platform, record: GroupRecord, instance: GroupInstance): void {
  if (instance.kubelet !== undefined && host.node(instance.nodeName) === undefined) host.cut(instance)
  if (instance.leavesAtMs === undefined || instance.leavesAtMs > clock.monotonic()) return
  host.cut(instance)
  record.instances.delete(instance.number)
}

function boot(platform: Platform, group: NodeGroup, record: GroupRecord, instance: GroupInstance): void {
  const { clock, host, settings } = platform
  const nowMs = clock.monotonic()
  if (instance.bootsAtMs === undefined || instance.bootsAtMs > nowMs) return
  // No instance boots while upstream does not respond.
  if (!record.isSynced && errorEndOf(record, nowMs) !== undefined) return
  instance.kubelet = host.boot(instance, {
    labels: { ...group.spec.labels, ...workerLabels(record.name, record.flavor.name) },
    taints: group.spec.taints ?? [],
    isNeverReady: effectOf(record, 'neverReady') !== undefined,
    memoryPercent: settings.guestMemoryPercent,
  })
}

/** Deletes Nodes without an instance; returns whether none is left. */
function removeStrays({ host }: Platform, record: GroupRecord): boolean {
  return numbers
    .filter((number) => !record.instances.has(number))
    .map((number) => host.removeNode(nodeNameOf(record, number)))
    .every((isGone) => isGone)
}
