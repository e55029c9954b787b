/** Samples memory and CPU time of a process over a phase, as the upstream suite does. */
import type { Clock } from '@tenon/runtime'
import type { ControllerProcess } from '../control-plane/controller-process.ts'

const periodMs = 5000

export interface Samples {
  /** 95th percentile of the resident memory. */
  readonly memoryMiB: number
  /** Average over the phase. */
  readonly cpuCores: number
  readonly seconds: number
}

/** Samples `controller` while `work` runs; `work` returns when the phase was over. */
export async function sampled(
  clock: Clock,
  controller: ControllerProcess,
  work: () => Promise<{ readonly endedMs: number }>,
): Promise<Samples> {
  const sample = () => ({ ...controller.figures(), atMs: clock.monotonic() })
  const first = sample()
  const samples = [first]
  const stop = new AbortController()
  const sampling = (async () => {
    while (!stop.signal.aborted) {
      await clock.sleep(periodMs, stop.signal).catch(() => undefined)
      samples.push(sample())
    }
  })()
  const { endedMs } = await work().finally(() => {
    stop.abort()
  })
  await sampling
  const last = samples.find(({ atMs }) => atMs >= endedMs) ?? sample()
  const memory = samples
    .filter(({ atMs }) => atMs <= last.atMs)
    .map(({ rssMiB }) => rssMiB)
    .toSorted((a, b) => a - b)
  return {
    memoryMiB: memory[Math.ceil(memory.length * 0.95) - 1] ?? Number.NaN,
    cpuCores: (last.cpuSeconds - first.cpuSeconds) / ((last.atMs - first.atMs) / 1000),
    seconds: (endedMs - first.atMs) / 1000,
  }
}
