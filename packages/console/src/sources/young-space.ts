/** Memory of processes that follow a large cluster (console.md 2). */
import { setFlagsFromString } from 'node:v8'

/**
 * Leaves the space for young objects as small as it is now. While a large cluster is read nearly all objects stay, and
 * V8 would let the space grow to 128 MiB: it would take that from then on, and a collection would hold everything for
 * longer.
 */
export function keepYoungSpaceSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}
