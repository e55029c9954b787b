/** Cores and memory that the cluster keeps: `--cores-total`, `--memory-total` (cluster-autoscaler.md 6.5). */
import { type Node, ownValue, parseResource } from '@tenon/api'
import type { ScaleDownOptions } from '../../options/options.ts'
import { hardTaintOf } from '../nodes/taints.ts'

type Floors = Pick<ScaleDownOptions, 'cores' | 'memory'>

interface Amounts {
  readonly cpuMillis: number
  readonly memoryBytes: number
}

/**
 * What may still be removed before a minimum is undercut. Nodes outside groups count, nodes that are being deleted and
 * virtual ones do not.
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
      // What a node does not tell is not counted on.
      const { cpuMillis = 0, memoryBytes = 0 } = capacityOf(node)
      this.#cpuMillis += cpuMillis
      this.#memoryBytes += memoryBytes
    }
  }

  /** Takes a node off. @returns the resource that would be undercut; then nothing is taken. */
  take(node: Node): 'cpu' | 'memory' | undefined {
    const { cpuMillis, memoryBytes } = capacityOf(node)
    if (isUndercut(this.#cpuMillis, cpuMillis, this.#floors.cores.min * 1000)) return 'cpu'
    if (isUndercut(this.#memoryBytes, memoryBytes, this.#floors.memory.min)) return 'memory'
    this.#cpuMillis -= cpuMillis ?? 0
    this.#memoryBytes -= memoryBytes ?? 0
    return undefined
  }
}

/** A node of which the size is not known may only go when there is no minimum. */
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
