import {
  type Container,
  type ContainerStatus,
  isResizeInfeasible,
  ownValue,
  parseResource,
  type Pod,
  type PodSpec,
  type PodStatus,
  type ResourceList,
} from '@tenon/api'
import { type Amount, cpuSlot, memorySlot, type ResourceTable } from './resource-table.ts'

/** What a container counts for in scoring when it requests nothing: 100m CPU, 200Mi memory. */
const assumedForScoring = [100, 200 * 1024 * 1024] as const

type Totals = Map<number, number>

/** What a pod asks of its node, and what it weighs in scoring: CPU (thousandths) and memory (bytes). */
interface Asked {
  /** Zero amounts left out. */
  readonly requests: readonly Amount[]
  readonly scored: { readonly cpu: number; readonly memory: number }
}

/** All that it follows from, beside the containers. */
type From = Pick<PodSpec, 'initContainers' | 'overhead' | 'resources'>

/** Works out what pods ask for; once for pods that share their containers, as cached ones of a workload do. */
export class PodRequests {
  readonly #table: ResourceTable
  readonly #known = new WeakMap<readonly Container[], { readonly from: From; readonly asked: Asked }>()

  constructor(table: ResourceTable) {
    this.#table = table
  }

  of({ spec, status }: Pick<Pod, 'spec' | 'status'>): Asked {
    if (hasAllocations(status)) return this.#work(spec, status)
    const known = this.#known.get(spec.containers)
    const isSame =
      known?.from.initContainers === spec.initContainers &&
      known?.from.overhead === spec.overhead &&
      known?.from.resources === spec.resources
    if (known !== undefined && isSame) return known.asked
    const asked = this.#work(spec, undefined)
    this.#known.set(spec.containers, { from: spec, asked })
    return asked
  }

  #work(spec: PodSpec, status: PodStatus | undefined): Asked {
    return {
      requests: podRequests(spec, status, this.#table),
      scored: scoredRequests(spec, status, this.#table),
    }
  }
}

/** Whether kubelets tell what containers have, which may be something else than they ask for. */
function hasAllocations({ containerStatuses = [], initContainerStatuses = [] }: PodStatus = {}): boolean {
  return [...containerStatuses, ...initContainerStatuses].some(({ resources }) => resources !== undefined)
}

/** What a pod asks of its node, zero amounts left out. */
function podRequests(spec: PodSpec, status: PodStatus | undefined, table: ResourceTable): Amount[] {
  const totals = requestsOf(spec, status, table, false)
  return [...totals]
    .filter(([, amount]) => amount > 0)
    .map(([slot, amount]) => ({ slot, amount }))
    .toSorted((a, b) => a.slot - b.slot)
}

/** CPU (thousandths) and memory (bytes) as scoring counts them: silent containers weigh something. */
function scoredRequests(
  spec: PodSpec,
  status: PodStatus | undefined,
  table: ResourceTable,
): { readonly cpu: number; readonly memory: number } {
  const totals = requestsOf(spec, status, table, true)
  return { cpu: totals.get(cpuSlot) ?? 0, memory: totals.get(memorySlot) ?? 0 }
}

/**
 * Containers and sidecars run together; an init container runs with the sidecars started before
 * it. The pod needs the greatest of these, or what `spec.resources` says, plus its overhead.
 * What runs counts with the most of what it asks for and, during a resize in place, still has.
 */
function requestsOf(
  spec: PodSpec,
  status: PodStatus | undefined,
  table: ResourceTable,
  assume: boolean,
): Totals {
  const isInfeasible = isResizeInfeasible(status)
  const held = (container: Container, statuses: readonly ContainerStatus[] | undefined): Totals => {
    const found = statuses?.find(({ name }) => name === container.name)
    return withAssumed(heldBy(container, found, isInfeasible, table), assume)
  }
  const running: Totals = new Map()
  for (const container of spec.containers) add(running, held(container, status?.containerStatuses))
  const initialising: Totals = new Map()
  const sidecars: Totals = new Map()
  for (const container of spec.initContainers ?? []) {
    const isSidecar = container.restartPolicy === 'Always'
    const own = held(container, isSidecar ? status?.initContainerStatuses : undefined)
    const together = new Map(sidecars)
    add(together, own)
    raise(initialising, together)
    if (isSidecar) {
      add(running, own)
      add(sidecars, own)
    }
  }
  raise(running, initialising)
  for (const [slot, amount] of amounts(spec.resources?.requests, table)) running.set(slot, amount)
  add(running, amounts(spec.overhead, table))
  return running
}

/** A container that is told to hold something counts with the most of that and of what it asks for. */
function heldBy(
  { resources }: Container,
  status: ContainerStatus | undefined,
  isInfeasible: boolean,
  table: ResourceTable,
): Totals {
  const asked = amounts(resources?.requests, table)
  if (status?.resources === undefined) return asked
  const granted = amounts(status.resources.requests, table)
  raise(granted, amounts(status.allocatedResources, table))
  if (!isInfeasible) raise(granted, asked)
  return granted
}

function withAssumed(totals: Totals, assume: boolean): Totals {
  if (assume) {
    for (const [slot, amount] of assumedForScoring.entries()) {
      if (!totals.has(slot)) totals.set(slot, amount)
    }
  }
  return totals
}

function amounts(list: ResourceList | undefined, table: ResourceTable): Totals {
  const totals: Totals = new Map()
  for (const name in list) totals.set(table.slotOf(name), parseResource(name, ownValue(list, name) as string))
  return totals
}

function add(into: Totals, other: Totals): void {
  for (const [slot, amount] of other) into.set(slot, (into.get(slot) ?? 0) + amount)
}

function raise(into: Totals, other: Totals): void {
  for (const [slot, amount] of other) into.set(slot, Math.max(into.get(slot) ?? 0, amount))
}
