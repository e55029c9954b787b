/** Minimum CPU and memory of the cluster: `--cores-total`, `--memory-total` (cluster-autoscaler.md 6.5). */
import { type Node, ownValue, parseResource } from '@tenon/api'
import type { ScaleDownOptions } from '../../options/options.ts'
import { hardTaintOf } from '../nodes/taints.ts'

type Floors = Pick<ScaleDownOptions, 'cores' | 'memory'>

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

  constructor(nodes: readonly Node[], floors: Floors) {
    this.#floors = floors
    for (const node of nodes) {
      if (hardTaintOf(node) !== undefined || ownValue(node.metadata.labels, 'type') === 'virtual-kubelet')
        continue
      // Unknown amounts count as 0.
      const { cpuMillis = 0, memoryBytes = 0 } = capacityOf(node)
      this.#cpuMillis += cpuMillis
      this.#memoryBytes += memoryBytes
    }
  }

  /**
   * Subtracts a node.
   * @returns the resource that would fall below its minimum; then nothing is subtracted.
   */
  take(node: Node): 'cpu' | 'memory' | undefined {
    const { cpuMillis, memoryBytes } = capacityOf(node)
    if (isUndercut(this.#cpuMillis, cpuMillis, this.#floors.cores.min * 1000)) return 'cpu'
    if (isUndercut(this.#memoryBytes, memoryBytes, this.#floors.memory.min)) return 'memory'
    this.#cpuMillis -= cpuMillis ?? 0
    this.#memoryBytes -= memoryBytes ?? 0
    return undefined
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
