/** How the option is chosen (cluster-autoscaler.md 4.5). */
import type { PodReader } from '@tenon/filters'
import { integerBetween, type Random } from '@tenon/runtime'
import type { ExpanderName } from '../options/options.ts'
import type { ExpansionOption } from './option.ts'
import { capacityOf } from './quotas.ts'

type Options = readonly ExpansionOption[]

/** Keeps the best options by one criterion. Returns an empty list only if the user's server rejects all. */
export type Expander = (options: Options, signal: AbortSignal) => Promise<Options>

/** What expanders read. */
export interface ExpanderSources {
  readonly reader: PodReader
  readonly random: Random
  readonly priority: Expander
  readonly grpc: Expander
}

/** Applies the expanders until one option is left; ties are decided at random. */
export function expanderChain(names: readonly ExpanderName[], sources: ExpanderSources) {
  const expanders = names.map((name) => expanderOf(name, sources))
  return async (options: Options, signal: AbortSignal): Promise<ExpansionOption | undefined> => {
    let left = options
    for (const expander of expanders) {
      if (left.length <= 1) break
      left = await expander(left, signal)
    }
    return left.length <= 1 ? left[0] : left[integerBetween(sources.random, 0, left.length - 1)]
  }
}

function expanderOf(name: ExpanderName, { reader, random, priority, grpc }: ExpanderSources): Expander {
  const pure =
    (choose: (options: Options) => Options): Expander =>
    (options) =>
      Promise.resolve(choose(options))
  switch (name) {
    case 'random':
      return pure((options) => options.slice(0, 0).concat(pick(options, random)))
    case 'most-pods':
      return pure((options) => least(options, ({ pods }) => -pods.length))
    case 'least-nodes':
      return pure(leastNodes)
    case 'least-waste':
      return pure((options) => least(options, (option) => wasteOf(option, reader)))
    case 'priority':
      return priority
    case 'grpc':
      return grpc
  }
}

function pick(options: Options, random: Random): Options {
  const option = options[integerBetween(random, 0, options.length - 1)]
  return option === undefined ? [] : [option]
}

/** Options without new nodes are useless, unless there is no other. */
function leastNodes(options: Options): Options {
  const adding = options.filter(({ nodeCount }) => nodeCount > 0)
  return adding.length === 0 ? options : least(adding, ({ nodeCount }) => nodeCount)
}

function least(options: Options, cost: (option: ExpansionOption) => number): Options {
  const costs = options.map(cost)
  const lowest = Math.min(...costs)
  return options.filter((_, index) => costs[index] === lowest)
}

/** The unused shares of CPU and memory capacity, added. */
function wasteOf({ nodeCount, pods, template }: ExpansionOption, reader: PodReader): number {
  const { cpuMillis, memoryBytes } = capacityOf(template.node)
  let [cpu, memory] = [0, 0]
  for (const pod of pods) {
    const facts = reader.factsOf(pod)
    cpu += facts.cpu
    memory += facts.memory
  }
  const share = (used: number, capacity: number) => (capacity === 0 ? 0 : (capacity - used) / capacity)
  return share(cpu, nodeCount * cpuMillis) + share(memory, nodeCount * memoryBytes)
}
