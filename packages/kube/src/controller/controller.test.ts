import assert from 'node:assert/strict'
import { test } from 'node:test'
import { kinds } from '@tenon/api'
import {
  JsonLogger,
  type LogFields,
  type Logger,
  SeededRandom,
  silentLogger,
  VirtualClock,
} from '@tenon/runtime'
import { type Controller, type ControllerOptions, done, KubeError } from '../contract.ts'
import { createKubeClient } from '../client/client.ts'
import { fencedTransport } from '../lease/fence.ts'
import { type ControllerActivity, type ControllerDependencies, createController } from './controller.ts'
import { createSingleton } from './singleton.ts'

interface Run {
  readonly key: string
  readonly at: number
}

interface World {
  readonly clock: VirtualClock
  readonly controller: Controller
  readonly runs: Run[]
  readonly logged: (LogFields | undefined)[]
}

function world(
  reconcile: ControllerOptions['reconcile'],
  options: Partial<ControllerOptions> = {},
  deps: Partial<ControllerDependencies> = {},
): World {
  const clock = new VirtualClock()
  const runs: Run[] = []
  const logged: (LogFields | undefined)[] = []
  const logger: Logger = {
    ...silentLogger,
    error: (_message, fields) => {
      logged.push(fields)
    },
  }
  const controller = createController(
    {
      name: 'test',
      concurrency: 1,
      ...options,
      reconcile: (key, signal) => {
        runs.push({ key, at: clock.monotonic() })
        return reconcile(key, signal)
      },
    },
    { clock, logger, ...deps },
  )
  return { clock, controller, runs, logged }
}

const finished = () => Promise.resolve(done)

test('keys are served in order, and a key that waits is not queued twice', async () => {
  const { clock, controller, runs } = world(finished)
  for (const key of ['b', 'a', 'b', 'c', 'a']) controller.enqueue(key)
  assert.deepEqual([controller.depth, runs.length], [3, 0])
  controller.start()
  await clock.advance(0)
  assert.deepEqual(
    runs.map(({ key }) => key),
    ['b', 'a', 'c'],
  )
  assert.equal(controller.depth, 0)
})

test('as many keys as allowed run at once, but never the same one twice', async () => {
  const clock = new VirtualClock()
  let most = 0
  const running: string[] = []
  const controller = createController(
    {
      name: 'test',
      concurrency: 3,
      reconcile: async (key) => {
        assert.ok(!running.includes(key))
        running.push(key)
        most = Math.max(most, running.length)
        await clock.sleep(1000)
        running.splice(running.indexOf(key), 1)
        return done
      },
    },
    { clock, logger: silentLogger },
  )
  controller.start()
  for (let i = 0; i < 10; i++) controller.enqueue(`k${i % 5}`)
  await clock.advance(500)
  assert.equal(controller.depth, 5)
  controller.enqueue('k0')
  controller.enqueue('k0')
  await clock.advance(10_000)
  assert.deepEqual([most, controller.depth], [3, 0])
})

test('a key enqueued during its run runs once more', async () => {
  const { clock, controller, runs } = world(async () => {
    await clock.sleep(1000)
    return done
  })
  controller.start()
  controller.enqueue('a')
  await clock.advance(500)
  controller.enqueue('a')
  controller.enqueue('a')
  await clock.advance(10_000)
  assert.deepEqual(
    runs.map(({ at }) => at),
    [0, 1000],
  )
})

test('of several delays the earliest counts, and an immediate run does not cancel it', async () => {
  const { clock, controller, runs } = world(finished)
  controller.start()
  controller.enqueue('a', 5000)
  controller.enqueue('a', 2000)
  controller.enqueue('a', 9000)
  controller.enqueue('a')
  await clock.advance(60_000)
  assert.deepEqual(
    runs.map(({ at }) => at),
    [0, 2000],
  )
})

test('errors are logged once each and back off per key up to the cap; success starts over', async () => {
  let failures = 5
  const seen: unknown[] = []
  const { clock, controller, runs, logged } = world(
    () => (failures-- > 0 ? Promise.reject(new KubeError('server', 500, 'down')) : finished()),
    { backoff: { baseMs: 100, capMs: 800 } },
    { onError: (name, key) => seen.push([name, key]) },
  )
  controller.start()
  controller.enqueue('a')
  await clock.advance(10_000)
  assert.deepEqual(
    runs.map(({ at }) => at),
    [0, 100, 300, 700, 1500, 2300],
  )
  assert.equal(logged.length, 5)
  assert.deepEqual([logged[0]?.['controller'], logged[0]?.['key']], ['test', 'a'])
  assert.equal(seen.length, 5)
  failures = 1
  runs.length = 0
  controller.enqueue('a')
  await clock.advance(10_000)
  assert.deepEqual(
    runs.map(({ at }) => at - 10_000),
    [0, 100],
  )
})

test('every line of a reconcile says which controller it is of, and which object and run', async () => {
  const lines: Record<string, unknown>[] = []
  const clock = new VirtualClock()
  const write = (line: string) => lines.push(JSON.parse(line) as Record<string, unknown>)
  const logger = new JsonLogger(clock, write, { value: 'info' })
  const controller = createController(
    {
      name: 'nodeclaim.lifecycle',
      concurrency: 2,
      describe: (name) => ({ controllerKind: 'NodeClaim', NodeClaim: { name }, name }),
      reconcile: async (key) => {
        await clock.sleep(10)
        logger.info('launched nodeclaim', { zone: 'a' })
        if (key === 'b') throw new KubeError('server', 500, 'down')
        return done
      },
    },
    { clock, logger, random: new SeededRandom(1) },
  )
  controller.start()
  controller.enqueue('a')
  controller.enqueue('b')
  await clock.advance(12)
  logger.info('outside')
  await controller.stop()
  const kept = lines.map(({ message, controller: of, NodeClaim: claim, name }) => [message, of, claim, name])
  assert.deepEqual(kept, [
    ['launched nodeclaim', 'nodeclaim.lifecycle', { name: 'a' }, 'a'],
    ['launched nodeclaim', 'nodeclaim.lifecycle', { name: 'b' }, 'b'],
    ['Reconciler error', 'nodeclaim.lifecycle', { name: 'b' }, 'b'],
    ['outside', undefined, undefined, undefined],
  ])
  const [first, second, third] = lines.map((line) => line['reconcileID'])
  assert.match(String(first), /^[0-9a-f]{8}-[0-9a-f]{4}-4/)
  assert.notEqual(first, second)
  assert.equal(second, third)
})

test('a bug fails its own key only, thrown at once or later', async () => {
  const { clock, controller, runs, logged } = world((key) => {
    if (key === 'sync') throw new TypeError('undefined is not a function')
    if (key === 'async') return Promise.reject(new assert.AssertionError({ message: 'broken' }))
    if (key === 'nothing') return Promise.resolve(undefined as never)
    return finished()
  })
  controller.start()
  for (const key of ['sync', 'async', 'nothing', 'fine']) controller.enqueue(key)
  await clock.advance(1)
  assert.deepEqual(
    runs.map(({ key }) => key),
    ['sync', 'async', 'nothing', 'fine'],
  )
  assert.equal(logged.length, 3)
  await controller.stop()
})

test('backoff grows like errors do, without a log; after waits exactly and resets it', async () => {
  const results = [
    { kind: 'backoff' },
    { kind: 'backoff' },
    { kind: 'after', delayMs: 1000 },
    { kind: 'backoff' },
    done,
  ] as const
  let next = 0
  const { clock, controller, runs, logged } = world(() => Promise.resolve(results[next++] ?? done), {
    backoff: { baseMs: 10, capMs: 10_000 },
  })
  controller.start()
  controller.enqueue('a')
  await clock.advance(10_000)
  assert.deepEqual(
    runs.map(({ at }) => at),
    [0, 10, 30, 1030, 1040],
  )
  assert.equal(logged.length, 0)
})

test('the token bucket spaces out retries over all keys', async () => {
  let isDown = true
  const { clock, controller, runs } = world(() => (isDown ? Promise.reject(new Error('down')) : finished()), {
    concurrency: 10,
    backoff: { baseMs: 1, capMs: 1 },
    rate: { perSecond: 1, burst: 2 },
  })
  controller.start()
  for (const key of ['a', 'b', 'c', 'd']) controller.enqueue(key)
  await clock.advance(0)
  isDown = false
  await clock.advance(10_000)
  assert.deepEqual(
    runs.map(({ key, at }) => `${key} ${at}`),
    ['a 0', 'b 0', 'c 0', 'd 0', 'a 1', 'b 1', 'c 1000', 'd 2000'],
  )
})

test('stop aborts what runs, waits for it and forgets the rest', async () => {
  let hasEnded = false
  const { clock, controller, runs, logged } = world(async (_key, signal) => {
    try {
      await clock.sleep(60_000, signal)
      return done
    } finally {
      hasEnded = true
    }
  })
  controller.start()
  controller.enqueue('a')
  controller.enqueue('b')
  controller.enqueue('c', 100)
  await clock.advance(10)
  await controller.stop()
  assert.ok(hasEnded)
  controller.enqueue('d')
  await clock.advance(60_000)
  assert.deepEqual([runs.length, logged.length, controller.depth], [1, 0, 0])
})

test('metrics see what was added, how long it waited and how it ended', async () => {
  const told: string[] = []
  const { clock, controller } = world(
    async (key) => {
      await clock.sleep(200)
      if (key === 'bad') throw new TypeError('bug')
      return done
    },
    {},
    {
      metrics: {
        added: () => told.push('added'),
        started: (_name, waitedMs) => told.push(`started ${waitedMs}`),
        finished: (_name, outcome, ms) => told.push(`${outcome} ${ms}`),
        retried: () => told.push('retried'),
      },
    },
  )
  controller.start()
  controller.enqueue('a')
  controller.enqueue('bad')
  await clock.advance(400)
  await controller.stop()
  assert.deepEqual(told, ['added', 'added', 'started 0', 'success 200', 'started 200', 'retried', 'bug 200'])
})

test('metrics can ask at any time who waits and who runs', async () => {
  const activities = new Map<string, ControllerActivity>()
  let isDown = true
  const { clock, controller } = world(
    async () => {
      await clock.sleep(1000)
      if (isDown) throw new Error('down')
      return done
    },
    { concurrency: 2, backoff: { baseMs: 1, capMs: 1 } },
    { metrics: { created: (name, activity) => activities.set(name, activity) } },
  )
  const activity = activities.get('test')
  const now = () => [activity?.waiting(), [...(activity?.runningSinceMs() ?? [])]]
  assert.equal(activity?.concurrency, 2)
  for (const key of ['a', 'b', 'c']) controller.enqueue(key)
  assert.deepEqual(now(), [{ fresh: 3, retry: 0 }, []])
  controller.start()
  await clock.advance(500)
  assert.deepEqual(now(), [{ fresh: 1, retry: 0 }, [0, 0]])
  for (const key of ['d', 'e']) controller.enqueue(key)
  await clock.advance(600)
  assert.deepEqual(now(), [{ fresh: 1, retry: 2 }, [1000, 1000]])
  isDown = false
  await clock.advance(60_000)
  assert.deepEqual(now(), [{ fresh: 0, retry: 0 }, []])
})

test('a singleton runs when its last pass asked for it, and backs off when a pass fails', async () => {
  const clock = new VirtualClock()
  const at: number[] = []
  const loop = createSingleton({
    name: 'loop',
    clock,
    logger: silentLogger,
    random: new SeededRandom(1),
    run: () => {
      at.push(clock.monotonic())
      return at.length === 2
        ? Promise.reject(new Error('down'))
        : Promise.resolve({ kind: 'after', delayMs: 10_000 })
    },
  })
  loop.start()
  await clock.advance(30_000)
  assert.deepEqual(at, [0, 10_000, 11_000, 21_000])
  loop.trigger()
  await clock.advance(1)
  assert.equal(at.length, 5)
  await loop.stop()
  await clock.advance(60_000)
  assert.equal(at.length, 5)
})

test('RPB-10 what is not written after the lease was lost is tried again, and no error', async () => {
  const fenced = fencedTransport({ send: () => Promise.reject(new Error('sent')) }, () => false)
  const client = createKubeClient({ transport: fenced, clock: new VirtualClock() })
  const { clock, controller, logged, runs } = world(async () => {
    try {
      await client.patch(kinds.node, { name: 'x' }, { spec: {} })
    } catch (cause) {
      throw new AggregateError([cause], 'the node was not patched', { cause })
    }
    return done
  })
  for (let i = 0; i < 10; i++) controller.enqueue(`k${i}`)
  controller.start()
  await clock.advance(60_000)
  assert.ok(runs.length > 10)
  assert.deepEqual(logged, [])
})
