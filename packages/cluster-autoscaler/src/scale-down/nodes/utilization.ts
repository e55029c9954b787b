/** Which share of a node is requested (cluster-autoscaler.md 6.2). */
import type { Node } from '@tenon/api'
import { cpuSlot, memorySlot, type NodeEntry, type PodFacts, type ResourceTable } from '@tenon/filters'
import type { ScaleDownOptions } from '../../options/options.ts'
import { isDaemonSetPod, isLongTerminating, isMirrorPod } from '../../pods/pod-traits.ts'
import { gpuResourceOf } from '../../gpu.ts'
import type { DeviceUse } from './device-use.ts'

export type Utilization =
  | { readonly kind: 'gpu'; readonly resource: string; readonly ratio: number }
  | ({ readonly kind: 'devices' } & DeviceUse)
  /** `ratio` is the larger of the two. */
  | { readonly kind: 'cpuMemory'; readonly cpu: number; readonly memory: number; readonly ratio: number }
  /** The node does not report its amount of a resource. */
  | { readonly kind: 'unknown'; readonly resource: string }

type Options = Pick<
  ScaleDownOptions,
  | 'ignoreDaemonSetsUtilization'
  | 'ignoreMirrorPodsUtilization'
  | 'utilizationThreshold'
  | 'gpuUtilizationThreshold'
>

interface Question {
  readonly node: Node
  readonly entry: NodeEntry
  readonly table: ResourceTable
  readonly options: Options
  readonly nowMs: number
  /** By node name. */
  readonly deviceUse: ReadonlyMap<string, DeviceUse>
}

export function utilizationOf({ node, entry, table, options, nowMs, deviceUse }: Question): Utilization {
  const pods = [...entry.pods.values()].filter(({ pod }) => !isLongTerminating(pod, nowMs))
  const gpu = gpuResourceOf(node)
  if (gpu !== undefined) {
    const slot = table.slotOf(gpu)
    return { kind: 'gpu', resource: gpu, ratio: requested(pods, slot) / (entry.allocatable[slot] ?? 0) || 0 }
  }
  const devices = deviceUse.get(node.metadata.name)
  if (devices !== undefined) return { kind: 'devices', ...devices }
  const ignored = pods.filter(({ pod }) => isIgnored(pod, options))
  const counted = ignored.length === 0 ? pods : pods.filter((facts) => !ignored.includes(facts))
  const ratios = [cpuSlot, memorySlot].map((slot) => {
    const allocatable = entry.allocatable[slot] ?? 0
    return allocatable <= 0
      ? undefined
      : share(requested(counted, slot), allocatable - requested(ignored, slot))
  })
  const [cpu, memory] = ratios
  if (cpu === undefined) return { kind: 'unknown', resource: 'cpu' }
  if (memory === undefined) return { kind: 'unknown', resource: 'memory' }
  return { kind: 'cpuMemory', cpu, memory, ratio: Math.max(cpu, memory) }
}

/** The utilization up to which a node may be removed, inclusive (trap 20). */
export function thresholdOf(utilization: Utilization, options: Options): number {
  return utilization.kind === 'gpu' ? options.gpuUtilizationThreshold : options.utilizationThreshold
}

/** Such as `cpu 12.5%, memory 40%`. */
export function renderUtilization(utilization: Utilization): string {
  switch (utilization.kind) {
    case 'gpu':
      return `${utilization.resource} ${percent(utilization.ratio)}`
    case 'devices':
      return `devices of ${utilization.driver} ${percent(utilization.ratio)}`
    case 'cpuMemory':
      return `cpu ${percent(utilization.cpu)}, memory ${percent(utilization.memory)}`
    case 'unknown':
      return `not known: the node has no allocatable ${utilization.resource}`
  }
}

function isIgnored(pod: PodFacts['pod'], options: Options): boolean {
  return (
    (options.ignoreDaemonSetsUtilization && isDaemonSetPod(pod)) ||
    (options.ignoreMirrorPodsUtilization && isMirrorPod(pod))
  )
}

function requested(pods: readonly PodFacts[], slot: number): number {
  let sum = 0
  for (const facts of pods) {
    if (slot === cpuSlot) sum += facts.cpu
    else if (slot === memorySlot) sum += facts.memory
    else sum += facts.requests.find((request) => request.slot === slot)?.amount ?? 0
  }
  return sum
}

/** If ignored pods use the whole node, any other request is infinite. */
function share(amount: number, of: number): number {
  if (amount === 0) return 0
  return of <= 0 ? 1 + amount : amount / of
}

function percent(ratio: number): string {
  return `${Math.round(ratio * 1000) / 10}%`
}
