/** Brings the machines and Nodes of a NodeGroup in line with what it asks for. */
import type { NodeGroup } from '../nodegroup/types.ts'
import { effectOf, errorEndOf, type GroupRecord, isSettled, stayingMachines } from './group-record.ts'
import { type Machine, workerLabels } from './machines.ts'
import { earliest, type Platform, usedQuota } from './platform.ts'
import { mostNodes } from './platform-crd.ts'
import { amountOf, isWithin, sumOf } from './quota.ts'
import { drawDelay } from './settings.ts'

/** A Node that others hold is looked at again after so long, should no event tell of its end. */
const lookAgainMs = 5_000

const numbers = Array.from({ length: mostNodes }, (_, number) => number)

const nodeNameOf = ({ name }: GroupRecord, number: number) => `${name}-node${number}`

/** One pass over the nodes of an accepted group; answers when the next is due. */
export function settleNodes(platform: Platform, group: NodeGroup, record: GroupRecord): number | undefined {
  const nowMs = platform.clock.monotonic()
  grow(platform, group, record)
  shrink(platform, group, record)
  for (const machine of record.machines.values()) {
    if (machine.leavesAtMs !== undefined) leave(platform, record, machine)
    else if (machine.kubelet === undefined) boot(platform, group, record, machine)
    machine.hasJoined ||= platform.room.isReady(machine)
  }
  const areStraysGone = removeStrays(platform, record)
  const errorEndMs = errorEndOf(record, nowMs)
  const isDue = nowMs >= record.syncAtMs && (errorEndMs === undefined || record.isSynced)
  if (isDue && isSettled(record)) record.isSynced = true
  const machines = [...record.machines.values()]
  const due = [...machines.flatMap(({ leavesAtMs, bootsAtMs }) => [leavesAtMs, bootsAtMs]), record.syncAtMs]
  return earliest([
    ...due.filter((atMs) => atMs !== undefined && atMs > nowMs),
    areStraysGone ? undefined : nowMs + lookAgainMs,
  ])
}

/** Ends every machine and deletes every Node; answers whether all Nodes are gone. */
export function clearNodes({ room }: Platform, record: GroupRecord): boolean {
  for (const machine of record.machines.values()) room.cut(machine)
  record.machines.clear()
  return numbers.map((number) => room.removeNode(nodeNameOf(record, number))).every((isGone) => isGone)
}

/** The machines of a group that is being deleted lose power. */
export function powerOff({ room, settings }: Platform, record: GroupRecord): void {
  for (const machine of record.machines.values()) {
    if (machine.kubelet === undefined) continue
    room.cut(machine)
    if (settings.nodesReportPowerOff) room.reportPowerOff(machine.nodeName)
  }
}

/** Machines whose Node is deleted register no more: they are being taken down. */
export function cutUnregistered({ room }: Platform, record: GroupRecord): void {
  for (const machine of record.machines.values())
    if (machine.kubelet !== undefined && room.node(machine.nodeName) === undefined) room.cut(machine)
}

/** Takes up the machines of an earlier run: those with a Node go on, the others come as new ones do. */
export function resumeNodes(platform: Platform, group: NodeGroup, record: GroupRecord): void {
  const { clock, room } = platform
  const isEnding = group.metadata.deletionTimestamp !== undefined
  const there = numbers.filter((number) => room.node(nodeNameOf(record, number)) !== undefined)
  for (const number of there) {
    const machine = addMachine(record, number, clock.monotonic())
    boot(platform, group, record, machine)
    machine.hasJoined = room.isReady(machine)
  }
  const target = isEnding ? 0 : (group.status?.targetNodeCount ?? group.spec.nodeCount)
  addMachines(record, target - there.length, record.nodesAtMs)
}

function grow(platform: Platform, group: NodeGroup, record: GroupRecord): void {
  const { clock, random, settings } = platform
  const { nodeCount } = group.spec
  const more = nodeCount - stayingMachines(record).length
  if (record.refusedCount !== nodeCount) record.refusedCount = undefined
  if (more <= 0 || record.refusedCount !== undefined) return
  if (!isWithin(sumOf([usedQuota(platform), amountOf(record.flavor, more)]), settings.quota)) {
    record.refusedCount = nodeCount
    return
  }
  const laterMs = clock.monotonic() + drawDelay(random, settings.nodeDelay)
  const isResize = record.machines.size > 0 || record.isSynced
  addMachines(record, more, isResize && record.nodesAtMs !== undefined ? laterMs : record.nodesAtMs)
}

function addMachines(record: GroupRecord, count: number, bootsAtMs: number | undefined): void {
  const free = numbers.filter((number) => !record.machines.has(number))
  for (const number of free.slice(0, Math.max(0, count))) addMachine(record, number, bootsAtMs)
}

function addMachine(record: GroupRecord, number: number, bootsAtMs: number | undefined): Machine {
  const machine: Machine = {
    nodeName: nodeNameOf(record, number),
    number,
    flavor: record.flavor,
    bootsAtMs,
    leavesAtMs: undefined,
    kubelet: undefined,
    hasJoined: false,
  }
  record.machines.set(number, machine)
  return machine
}

/** The machines with the highest numbers go first. */
function shrink({ clock, random, settings }: Platform, group: NodeGroup, record: GroupRecord): void {
  const staying = stayingMachines(record).toSorted((a, b) => a.number - b.number)
  for (const machine of staying.slice(group.spec.nodeCount))
    machine.leavesAtMs = clock.monotonic() + drawDelay(random, settings.deletionDelay)
}

function leave({ clock, room }: Platform, record: GroupRecord, machine: Machine): void {
  if (machine.kubelet !== undefined && room.node(machine.nodeName) === undefined) room.cut(machine)
  if (machine.leavesAtMs === undefined || machine.leavesAtMs > clock.monotonic()) return
  room.cut(machine)
  record.machines.delete(machine.number)
}

function boot(platform: Platform, group: NodeGroup, record: GroupRecord, machine: Machine): void {
  const { clock, room, settings } = platform
  const nowMs = clock.monotonic()
  if (machine.bootsAtMs === undefined || machine.bootsAtMs > nowMs) return
  // Upstream does not answer: the machine does not come before it does.
  if (!record.isSynced && errorEndOf(record, nowMs) !== undefined) return
  machine.kubelet = room.boot(machine, {
    labels: { ...group.spec.labels, ...workerLabels(record.name, record.flavor.name) },
    taints: group.spec.taints ?? [],
    isNeverReady: effectOf(record, 'neverReady') !== undefined,
    memoryPercent: settings.guestMemoryPercent,
  })
}

/** Deletes Nodes without a machine; answers whether there is none any more. */
function removeStrays({ room }: Platform, record: GroupRecord): boolean {
  return numbers
    .filter((number) => !record.machines.has(number))
    .map((number) => room.removeNode(nodeNameOf(record, number)))
    .every((isGone) => isGone)
}
