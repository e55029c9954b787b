/** Measures one workload, in its own process, so that heaps of workloads do not mix. */
import { setFlagsFromString } from 'node:v8'
import { type SchedulingInput, type SchedulingResult, schedule, TypeReader } from '@tenon/engine'
import { lowerBound } from './lower-bound.ts'
import { type Improvement, inputOf, type Workload } from './workloads.ts'

/** Sent by the process; the heap trace is on its standard output (see heap-trace.ts). */
export interface Measurement {
  /** Of each run, in order; the first one is cold. */
  readonly ms: readonly number[]
  readonly nodes: number
  readonly unplaced: number
  /** Per hour, of the new nodes. */
  readonly price: number
  /** Lowest price per hour of the placed pods. */
  readonly bound: number
  /** Heap and array buffers in use after the first run, and those array buffers alone. */
  readonly heapAtEndMib: number
  readonly arrayBuffersMib: number
}

const mebibyte = 1024 ** 2

function withCatalogueOf(first: SchedulingInput, input: SchedulingInput): SchedulingInput {
  const catalogues = new Map(first.pools.map((pool) => [pool.nodePool.metadata.name, pool.instanceTypes]))
  return {
    ...input,
    pools: input.pools.map((pool) => ({
      ...pool,
      instanceTypes: catalogues.get(pool.nodePool.metadata.name) ?? pool.instanceTypes,
    })),
  }
}

export async function measure(
  workload: Workload,
  improvement: Improvement,
  runs: number,
): Promise<Measurement> {
  const ms: number[] = []
  let result: SchedulingResult | undefined
  let memory = process.memoryUsage()
  const first = inputOf(workload, improvement)
  const types = new TypeReader()
  for (let run = 0; run < runs; run++) {
    // New pods each time, but the same catalogue, as in a controller: types are compiled once.
    const input = run === 0 ? first : withCatalogueOf(first, inputOf(workload, improvement))
    result = undefined
    // Only the first run's heap counts: later ones contain garbage of earlier ones.
    if (run === 0) setFlagsFromString('--trace-gc')
    const start = performance.now()
    result = schedule(input, { shouldStop: () => false, types })
    ms.push(performance.now() - start)
    if (run === 0) {
      setFlagsFromString('--no-trace-gc')
      memory = process.memoryUsage()
    }
  }
  if (result === undefined) throw new RangeError('at least one run is needed')
  const leftOut = new Set(
    [...result.failures.map(({ pod }) => pod), ...result.undecided].map(({ metadata }) => metadata.uid ?? ''),
  )
  return {
    ms,
    nodes: result.claims.length,
    unplaced: leftOut.size,
    price: result.claims.reduce((total, claim) => total + (claim.pricePerHour ?? Number.NaN), 0),
    bound: await lowerBound(inputOf(workload, improvement), leftOut, workload.boundOn),
    heapAtEndMib: (memory.heapUsed + memory.arrayBuffers) / mebibyte,
    arrayBuffersMib: memory.arrayBuffers / mebibyte,
  }
}
