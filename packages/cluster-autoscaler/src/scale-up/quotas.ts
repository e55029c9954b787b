/**
 * Limits of the whole cluster, `--cores-total`, `--memory-total` and `--gpu-total` (cluster-autoscaler.md 4.3), the
 * cloud's instance quota, and CapacityQuotas (quotas.md 1).
 */
import { parseResource, type Node } from '@tenon/api'
import type { InstanceQuota } from '@tenon/provider'
import { gpusOf } from '../gpu.ts'
import type { ExceededQuota, LimitedResource, NodeTemplate, QuotaUse } from '../model.ts'
import type { GpuRange, ResourceRange } from '../options/options.ts'
import { exceededQuotas, mostNodes, withNodes } from './capacity-quotas.ts'

export interface ClusterLimits {
  readonly cores: ResourceRange
  /** Bytes. */
  readonly memory: ResourceRange
  readonly gpus: readonly GpuRange[]
}

/** Cores may be fractions in thousandths. */
interface Amounts {
  readonly cpuMillis: number
  readonly memoryBytes: number
}

/** Tracks the use, and how many more nodes of a group are allowed. */
export class QuotaTracker {
  readonly #limits: ClusterLimits
  readonly #gpuLabel: string | undefined
  #used: Amounts
  /** By type. */
  readonly #usedGpus = new Map<string, number>()
  #instancesLeft: number | undefined
  #quotas: readonly QuotaUse[]

  /**
   * @param nodes registered and upcoming ones.
   * @param instances quota of the account; undefined without a limit, or if unknown.
   * @param gpuLabel label of nodes with a GPU; undefined if types of GPUs are not told apart.
   * @param quotas enforced CapacityQuotas.
   */
  constructor(
    limits: ClusterLimits,
    nodes: readonly Node[],
    instances: InstanceQuota | undefined,
    gpuLabel: string | undefined,
    quotas: readonly QuotaUse[],
  ) {
    this.#quotas = quotas
    this.#limits = limits
    this.#gpuLabel = gpuLabel
    this.#used = totalOf(nodes)
    for (const node of nodes) this.#takeGpus(node, 1)
    this.#instancesLeft = instances && Math.max(0, instances.limit - instances.used)
  }

  /** How many more instances the account may have. */
  get instancesLeft(): number | undefined {
    return this.#instancesLeft
  }

  get used(): Amounts {
    return this.#used
  }

  /** The limits that `count` more nodes would exceed; empty = allowed. */
  exceededBy({ node }: NodeTemplate, count: number): readonly ExceededQuota[] {
    const { cpuMillis, memoryBytes } = capacityOf(node)
    const { cores, memory } = this.#limits
    const exceeded: LimitedResource[] = []
    if (this.#used.cpuMillis + count * cpuMillis > cores.max * 1000) exceeded.push('cpu')
    if (this.#used.memoryBytes + count * memoryBytes > memory.max) exceeded.push('memory')
    const gpus = gpusOf(node, this.#gpuLabel)
    if (gpus !== undefined && gpus.count * count > this.#gpusLeft(gpus.type)) exceeded.push(gpus.type)
    const resources = exceeded.map((name) => ({ name }))
    return [
      ...(resources.length > 0 ? [{ quota: 'cluster-wide', resources }] : []),
      ...exceededQuotas(this.#quotas, node, count),
    ]
  }

  /**
   * How many nodes, up to `wanted`, the limits allow.
   * @param template undefined if the size of a node is unknown; CapacityQuotas then allow none.
   */
  most(template: NodeTemplate | undefined, wanted: number): number {
    const granted = Math.min(wanted, this.#instancesLeft ?? wanted)
    if (template === undefined) return this.#quotas.length > 0 ? 0 : Math.max(0, granted)
    const { cpuMillis, memoryBytes } = capacityOf(template.node)
    const { cores, memory } = this.#limits
    const gpus = gpusOf(template.node, this.#gpuLabel)
    const room = (max: number, used: number, each: number) =>
      each === 0 ? wanted : Math.floor((max - used) / each)
    const most = Math.min(
      mostNodes(this.#quotas, template.node, granted),
      room(cores.max * 1000, this.#used.cpuMillis, cpuMillis),
      room(memory.max, this.#used.memoryBytes, memoryBytes),
      gpus === undefined || gpus.count === 0 ? wanted : Math.floor(this.#gpusLeft(gpus.type) / gpus.count),
    )
    return Math.max(0, most)
  }

  /** @param count negative to give nodes back. */
  take(template: NodeTemplate | undefined, count: number): void {
    if (this.#instancesLeft !== undefined) this.#instancesLeft = Math.max(0, this.#instancesLeft - count)
    if (template === undefined) return
    const { cpuMillis, memoryBytes } = capacityOf(template.node)
    this.#used = {
      cpuMillis: this.#used.cpuMillis + count * cpuMillis,
      memoryBytes: this.#used.memoryBytes + count * memoryBytes,
    }
    this.#takeGpus(template.node, count)
    this.#quotas = withNodes(this.#quotas, template.node, count)
  }

  /** Infinite without a limit. */
  #gpusLeft(type: string): number {
    const limit = this.#limits.gpus.find((each) => each.type === type)
    return limit === undefined ? Number.POSITIVE_INFINITY : limit.max - (this.#usedGpus.get(type) ?? 0)
  }

  #takeGpus(node: Node, count: number): void {
    const gpus = gpusOf(node, this.#gpuLabel)
    if (gpus !== undefined)
      this.#usedGpus.set(gpus.type, (this.#usedGpus.get(gpus.type) ?? 0) + count * gpus.count)
  }
}

/** Capacity of all nodes but virtual ones. */
export function totalOf(nodes: Iterable<Node>): Amounts {
  let [cpuMillis, memoryBytes] = [0, 0]
  for (const node of nodes) {
    if (node.metadata.labels?.['type'] === 'virtual-kubelet') continue
    const capacity = capacityOf(node)
    cpuMillis += capacity.cpuMillis
    memoryBytes += capacity.memoryBytes
  }
  return { cpuMillis, memoryBytes }
}

export function capacityOf({ status }: Node): Amounts {
  return {
    cpuMillis: parseResource('cpu', status?.capacity?.['cpu'] ?? 0),
    memoryBytes: parseResource('memory', status?.capacity?.['memory'] ?? 0),
  }
}
