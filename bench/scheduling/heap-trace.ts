/**
 * Peak heap, from V8's own trace of its collections.
 *
 * A pass is synchronous, so nothing in the process can sample it. But a heap only grows between two
 * collections, so its peaks are right before each collection, and at the end. V8 prints the former: memory in
 * use including garbage on the JavaScript heap, with the input. Typed arrays are outside of that heap; their
 * size at the end of the pass is added.
 */
import type { Measurement } from './measure.ts'

/** Lines look like `[1:0x3f]  89 ms: Scavenge 21.4 (30.3) -> 19.4 (46.6) MB, …`; MB are MiB here. */
const collection = /ms: [A-Z][\w\s()-]*? (\d+\.\d) \(\d+\.\d\) -> /g

/** Maximum memory in use during the traced run, in MiB. */
export function peakHeapMib(
  trace: string,
  { heapAtEndMib, arrayBuffersMib }: Pick<Measurement, 'heapAtEndMib' | 'arrayBuffersMib'>,
): number {
  const before = [...trace.matchAll(collection)].map(([, used]) => Number(used) + arrayBuffersMib)
  return before.reduce((most, used) => Math.max(most, used), heapAtEndMib)
}
