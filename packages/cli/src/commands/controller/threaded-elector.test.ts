/** The thread that holds the lease, beside a main thread that does not come to anything else. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { JsonLogger, SystemClock } from '@tenon/runtime'
import { eventually, startCluster, temporaryDirectory } from '../../testing/tenon-process.test-support.ts'
import { ThreadedElector } from './threaded-elector.ts'

const pace = { leaseDurationMs: 9_000, renewDeadlineMs: 6_000, retryPeriodMs: 500 }

test('RPB-10 a main thread that is busy for longer than the lease holds keeps it', async (t) => {
  const cwd = await temporaryDirectory(t)
  await startCluster(t, cwd, 'devcluster')
  const lines: string[] = []
  const told: string[] = []
  const candidate = (identity: string) =>
    new ThreadedElector({
      data: {
        config: { env: {}, kubeconfig: join(cwd, '.tenon/kubeconfig') },
        election: { namespace: 'kube-system', name: 'tenon', identity, ...pace },
        requestTimeoutMs: 3000,
        userAgent: 'test',
      },
      logger: new JsonLogger(new SystemClock(), (line) => lines.push(line), { value: 'info' }),
      onStarted: () => told.push(`${identity} started`),
      onStopped: () => told.push(`${identity} stopped`),
    })
  const leads = (elector: ThreadedElector) =>
    eventually(
      () => elector.isLeader || undefined,
      () => lines.join(''),
    )
  const first = candidate('a')
  first.start()
  await leads(first)
  // What a decision or a parse does to this thread; the lease would be lost twice over.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2 * pace.leaseDurationMs)
  assert.ok(first.isLeader, 'it is known at once, before any message of the thread was read')
  const second = candidate('b')
  second.start()
  await first.stop()
  assert.equal(first.isLeader, false)
  await leads(second)
  await second.stop()
  assert.deepEqual(told, ['a started', 'a stopped', 'b started', 'b stopped'])
})
