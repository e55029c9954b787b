/**
 * Which groups have similar nodes, so that new nodes are distributed over them (cluster-autoscaler.md 4.7).
 */
import { type Node, ownValue, parseResource } from '@tenon/api'
import type { PodReader } from '@tenon/filters'
import type { NodeTemplate } from '../model.ts'
import { templateNodeLabel } from '../names.ts'
import type { ScaleUpOptions } from '../options/options.ts'

type SimilarityOptions = Pick<
  ScaleUpOptions,
  | 'balancingIgnoreLabels'
  | 'balancingLabels'
  | 'memoryDifferenceRatio'
  | 'maxFreeDifferenceRatio'
  | 'maxAllocatableDifferenceRatio'
>

const ignoredLabels = [
  'kubernetes.io/hostname',
  'failure-domain.beta.kubernetes.io/zone',
  'failure-domain.beta.kubernetes.io/region',
  'topology.kubernetes.io/zone',
  'topology.kubernetes.io/region',
  'beta.kubernetes.io/fluentd-ds-ready',
  'kops.k8s.io/instancegroup',
  templateNodeLabel,
]

/**
 * Compares templates. If the user configured labels, only these count; otherwise resources and nearly all labels.
 */
export function areSimilar(
  a: NodeTemplate,
  b: NodeTemplate,
  options: SimilarityOptions,
  reader: PodReader,
): boolean {
  if (options.balancingLabels.length > 0) return haveSame(options.balancingLabels, a.node, b.node)
  const ignored = new Set([...ignoredLabels, ...options.balancingIgnoreLabels])
  return haveSameLabels(a.node, b.node, ignored) && haveSimilarAmounts(a, b, options, reader)
}

function haveSame(keys: readonly string[], a: Node, b: Node): boolean {
  return keys.every((key) => {
    const value = ownValue(a.metadata.labels, key)
    return value !== undefined && value === ownValue(b.metadata.labels, key)
  })
}

function haveSameLabels(a: Node, b: Node, ignored: ReadonlySet<string>): boolean {
  const keys = new Set([...Object.keys(a.metadata.labels ?? {}), ...Object.keys(b.metadata.labels ?? {})])
  return [...keys].every(
    (key) => ignored.has(key) || ownValue(a.metadata.labels, key) === ownValue(b.metadata.labels, key),
  )
}

function haveSimilarAmounts(
  a: NodeTemplate,
  b: NodeTemplate,
  options: SimilarityOptions,
  reader: PodReader,
): boolean {
  const { memoryDifferenceRatio, maxAllocatableDifferenceRatio, maxFreeDifferenceRatio } = options
  const capacities = [amounts(a.node.status?.capacity), amounts(b.node.status?.capacity)] as const
  const allocatable = [amounts(a.node.status?.allocatable), amounts(b.node.status?.allocatable)] as const
  const free = [freeOf(a, reader), freeOf(b, reader)] as const
  return (
    areClose(...capacities, (name) => (name === 'memory' ? memoryDifferenceRatio : 0)) &&
    areClose(...allocatable, () => maxAllocatableDifferenceRatio) &&
    areClose(...free, () => maxFreeDifferenceRatio)
  )
}

type Amounts = ReadonlyMap<string, number>

function amounts(list: Readonly<Record<string, string>> | undefined): Amounts {
  return new Map(Object.entries(list ?? {}).map(([name, quantity]) => [name, parseResource(name, quantity)]))
}

function freeOf({ node, pods }: NodeTemplate, reader: PodReader): Amounts {
  const free = new Map(amounts(node.status?.allocatable))
  for (const pod of pods) {
    for (const { slot, amount } of reader.factsOf(pod).requests) {
      const name = reader.table.nameOf(slot)
      const left = free.get(name)
      if (left !== undefined) free.set(name, left - amount)
    }
  }
  return free
}

/** Whether both have the same keys, and amounts differ by at most a share of the larger one. */
function areClose(a: Amounts, b: Amounts, ratio: (name: string) => number): boolean {
  if (a.size !== b.size) return false
  return [...a].every(([name, amount]) => {
    const other = b.get(name)
    if (other === undefined) return false
    return Math.abs(amount - other) <= Math.max(amount, other) * ratio(name)
  })
}
