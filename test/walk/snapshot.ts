/** Writes the snapshot for the flow `explain` in a thread, so that its code does not count as loaded. */
import { workerData } from 'node:worker_threads'
import { writeSnapshot } from '@tenon/ask'
import { aPending, aPool, aSnapshot, aType } from '@tenon/ask/test-clusters'

await writeSnapshot(
  workerData as string,
  aSnapshot([aPool('blue'), aPending('a', { cpu: '9' })], [aType('small', 1)]),
)
