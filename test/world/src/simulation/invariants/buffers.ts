/** CapacityBuffers keep the capacity that they promise, and their placeholder pods stay internal. */
import {
  autoscalingKinds,
  type CapacityBuffer,
  conditionOf,
  isConditionTrue,
  kinds,
  labels,
  type Node,
  ownValue,
  parseResources,
  type Pod,
  type PodSpec,
  type PodTemplateSpec,
} from '@tenon/api'
import type { World } from '../../world.ts'
import { workloadTypes } from '../workload/objects.ts'
import { isOfDaemonSet } from './pods.ts'
import type { Invariant } from './scene.ts'

const podPrefix = 'capacity-buffer-'

/** Placeholder pods are never evicted, deleted, patched or named in Events: the API server has none. */
export const bufferPodsStayInside: Invariant = ({ violate }) => ({
  apiWrite({ method, plural, name = '', request: { body } }) {
    if (plural === 'pods' && name.startsWith(podPrefix))
      violate('bufferPodsStayInside', `${method} of pod ${name}, which only stands for room`)
    if (plural === 'events' && String(body).includes(`"name":"${podPrefix}`))
      violate('bufferPodsStayInside', `an Event is about a pod that only stands for room: ${String(body)}`)
  },
})

interface Amounts {
  readonly cpu: number
  readonly memory: number
}

/** Requests of a buffer's pod, and the number of pods. */
interface Wanted extends Amounts {
  readonly name: string
  readonly count: number
}

/** Where CapacityBuffers and cluster disagree, once everything else has settled. */
export function roomTrouble(world: World): readonly string[] {
  const { local } = world.cluster.server
  const ready = local
    .list(autoscalingKinds.capacityBuffer)
    .filter((buffer) => isConditionTrue(buffer, 'ReadyForProvisioning'))
  const wanted = ready.flatMap((buffer) => wantedBy(world, buffer) ?? [])
  const nodes = world.nodes().filter(isOpen)
  const podsOn = Map.groupBy(
    world.pods().filter(({ status }) => status?.phase !== 'Succeeded' && status?.phase !== 'Failed'),
    ({ spec }) => spec.nodeName ?? '',
  )
  const problems = ready.flatMap((buffer) => conditionTrouble(buffer) ?? [])
  const free = nodes.map((node) => freeOn(node, podsOn.get(node.metadata.name) ?? []))
  if (problems.length === 0 && !hasRoom(free, wanted)) {
    const texts = wanted.map(({ name, count }) => `${count} of ${name}`)
    problems.push(`there is no room on the nodes for ${texts.join(', ')}, though all say that there is`)
  }
  const empty = nodes.filter(
    (node) => !staysEmpty(node) && (podsOn.get(node.metadata.name) ?? []).every(isOfDaemonSet),
  )
  const most = wanted.reduce((sum, { count }) => sum + count, 0)
  if (empty.length > most)
    problems.push(`${empty.length} node(s) are empty, and there is to be room for ${most} pod(s)`)
  return problems
}

function conditionTrouble(buffer: CapacityBuffer): string | undefined {
  const { name } = buffer.metadata
  const found = conditionOf(buffer, 'Provisioning')
  const expected = (buffer.status?.replicas ?? 0) > 0 ? 'FitsExistingCapacity' : 'BufferEmpty'
  return found?.reason === expected ? undefined : `CapacityBuffer ${name} says ${found?.reason ?? 'nothing'}`
}

function wantedBy(world: World, { metadata, spec, status }: CapacityBuffer): Wanted | undefined {
  const { local } = world.cluster.server
  const { namespace } = metadata
  const count = status?.replicas ?? 0
  const { podTemplateRef, scalableRef } = spec
  const template =
    podTemplateRef === undefined
      ? (local.get(workloadTypes.deployment, namespace, scalableRef?.name ?? '') as Templated | undefined)
          ?.spec.template
      : local.get(kinds.podTemplate, namespace, podTemplateRef.name)?.template
  if (template === undefined || count === 0) return undefined
  return { name: metadata.name, count, ...amountsOf(template.spec) }
}

interface Templated {
  readonly spec: { readonly template: PodTemplateSpec }
}

/** Pods of the world have one container, or few with requests. */
function amountsOf({ containers }: PodSpec): Amounts {
  const parsed = containers.map(({ resources }) => parseResources(resources?.requests))
  const sum = (name: string) => parsed.reduce((total, requests) => total + (ownValue(requests, name) ?? 0), 0)
  return { cpu: sum('cpu'), memory: sum('memory') }
}

/** A node of the pools that accept any pod. */
function isOpen({ metadata, spec }: Node): boolean {
  const pool = metadata.labels?.[labels.nodePool] ?? ''
  return (
    ['general', 'overflow', 'static'].includes(pool) &&
    metadata.deletionTimestamp === undefined &&
    (spec?.taints ?? []).length === 0 &&
    spec?.unschedulable !== true
  )
}

/** A node that stays even if no pod needs it. */
function staysEmpty({ metadata }: Node): boolean {
  const isStatic = metadata.labels?.[labels.nodePool] === 'static'
  return isStatic || metadata.annotations?.['karpenter.sh/do-not-disrupt'] !== undefined
}

function freeOn({ status }: Node, pods: readonly Pod[]): Amounts {
  const { cpu = 0, memory = 0 } = parseResources(status?.allocatable)
  const used = pods.map(({ spec }) => amountsOf(spec))
  return {
    cpu: used.reduce((left, amounts) => left - amounts.cpu, cpu),
    memory: used.reduce((left, amounts) => left - amounts.memory, memory),
  }
}

/** Whether all pods fit at the same time, in some order of buffers and nodes. */
function hasRoom(free: readonly Amounts[], wanted: readonly Wanted[]): boolean {
  const byRoom = free.toSorted((a, b) => a.cpu - b.cpu)
  const orders = [free, byRoom, byRoom.toReversed()]
  return permutations(wanted).some((order) => orders.some((nodes) => fits(nodes, order)))
}

function fits(free: readonly Amounts[], wanted: readonly Wanted[]): boolean {
  const left = free.map((amounts) => ({ ...amounts }))
  return wanted.every(({ count, cpu, memory }) => {
    let missing = count
    for (const node of left) {
      const here = Math.max(
        0,
        Math.min(missing, Math.floor(node.cpu / cpu), Math.floor(node.memory / memory)),
      )
      node.cpu -= here * cpu
      node.memory -= here * memory
      missing -= here
    }
    return missing === 0
  })
}

function permutations<T>(items: readonly T[]): readonly (readonly T[])[] {
  if (items.length <= 1) return [items]
  return items.flatMap((first, at) => permutations(items.toSpliced(at, 1)).map((rest) => [first, ...rest]))
}
