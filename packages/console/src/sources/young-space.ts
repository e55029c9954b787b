/** Memory of processes that follow a large cluster (console.md 2). */
import { setFlagsFromString } from 'node:v8'

/**
 * Keeps V8's young generation at its current size. Nearly all objects survive while a large cluster is listed,
 * so V8 would grow it to 128 MiB and keep that, and each collection would pause for longer.
 */
export function keepYoungSpaceSmall(): void {
  setFlagsFromString('--semi-space-growth-factor=1')
}
