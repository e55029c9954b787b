/** Minimum CPU, memory and GPUs of the cluster: `--cores-total`, `--memory-total`, `--gpu-total` (cluster-autoscaler.md 6.5). */
import { type Node, ownValue, parseResource } from '@tenon/api'
import { gpusOf } from '../../gpu.ts'
import type { LimitedResource } from '../../model.ts'
import type { ScaleDownOptions } from '../../options/options.ts'
import { hardTaintOf } from '../nodes/taints.ts'

type Floors = Pick<ScaleDownOptions, 'cores' | 'memory' | 'gpus'>

interface Amounts {
  readonly cpuMillis: number
  readonly memoryBytes: number
}

/**
 * What may still be removed above the minimum. Nodes outside groups count; nodes being deleted and virtual nodes do
 * not.
 */
export class ResourceFloor {
  readonly #floors: Floors
  #cpuMillis = 0
  #memoryBytes = 0
  /** By type. */
  readonly #gpus = new Map<string, number>()
  readonly #gpuLabel: string | undefined

  /** @param gpuLabel label of nodes with a GPU; undefined if types of GPUs are not told apart. */
  constructor(nodes: readonly Node[], floors: Floors, gpuLabel: string | undefined) {
    this.#floors = floors
    this.#gpuLabel = gpuLabel
    for (const node of nodes) {
      if (hardTaintOf(node) !== undefined || ownValue(node.metadata.labels, 'type') === 'virtual-kubelet')
        continue
      // Unknown amounts count as 0.
      const { cpuMillis = 0, memoryBytes = 0 } = capacityOf(node)
      this.#cpuMillis += cpuMillis
      this.#memoryBytes += memoryBytes
      this.#addGpus(node, 1)
    }
  }

  /**
   * Subtracts a node.
   * @returns the resource that would fall below its minimum; then nothing is subtracted.
   */
  take(node: Node): LimitedResource | undefined {
    const { cpuMillis, memoryBytes } = capacityOf(node)
    if (isUndercut(this.#cpuMillis, cpuMillis, this.#floors.cores.min * 1000)) return 'cpu'
    if (isUndercut(this.#memoryBytes, memoryBytes, this.#floors.memory.min)) return 'memory'
    const gpus = gpusOf(node, this.#gpuLabel)
    const leastGpus = this.#floors.gpus.find(({ type }) => type === gpus?.type)?.min ?? 0
    if (gpus !== undefined && isUndercut(this.#gpus.get(gpus.type) ?? 0, gpus.count, leastGpus))
      return gpus.type
    this.#cpuMillis -= cpuMillis ?? 0
    this.#memoryBytes -= memoryBytes ?? 0
    this.#addGpus(node, -1)
    return undefined
  }

  #addGpus(node: Node, sign: 1 | -1): void {
    const gpus = gpusOf(node, this.#gpuLabel)
    if (gpus !== undefined) this.#gpus.set(gpus.type, (this.#gpus.get(gpus.type) ?? 0) + sign * gpus.count)
  }
}

/** A node of unknown size may only be removed if there is no minimum. */
function isUndercut(total: number, amount: number | undefined, min: number): boolean {
  return min > 0 && (amount === undefined || total - amount < min)
}

function capacityOf({ status }: Node): Partial<Amounts> {
  const cpu = ownValue(status?.capacity, 'cpu')
  const memory = ownValue(status?.capacity, 'memory')
  return {
    ...(cpu === undefined ? {} : { cpuMillis: parseResource('cpu', cpu) }),
    ...(memory === undefined ? {} : { memoryBytes: parseResource('memory', memory) }),
  }
}
