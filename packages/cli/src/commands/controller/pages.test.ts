import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type LogFields, type LogLevel, silentLogger, SystemClock, VirtualClock } from '@tenon/runtime'
import { guardMemory } from './memory.ts'
import { controllerPages } from './pages.ts'
import { openProfiles } from './profiles.ts'
import { commitOf, podNamespace } from './surroundings.ts'

async function asking(level: { value: LogLevel }, isProfiling = false) {
  const clock = new SystemClock()
  const profiles = isProfiling ? await openProfiles(clock, ['node', 'tenon']) : undefined
  const pages = controllerPages(level, profiles ? { profiles } : {})
  return async (path: string, method = 'GET', body?: string) => {
    const request = { method, path, headers: {}, ...(body !== undefined && { body }) }
    const { status, body: answer } = await pages(request)
    const bytes: Buffer[] = []
    for await (const chunk of answer) bytes.push(Buffer.from(chunk))
    return { status, bytes: Buffer.concat(bytes), text: Buffer.concat(bytes).toString() }
  }
}

test('the level of the log is read and changed while the process runs', async () => {
  const level: { value: LogLevel } = { value: 'info' }
  const ask = await asking(level)
  const path = '/debug/log-level'
  assert.equal((await ask(path)).text, 'info\n')
  assert.equal((await ask(path, 'PUT', 'debug\n')).text, 'debug\n')
  assert.equal(level.value, 'debug')
  for (const body of ['loud', ''])
    assert.deepEqual((await ask(path, 'PUT', body)).text, 'give one of debug, info, error as body\n')
  assert.equal((await ask(path, 'DELETE')).status, 405)
  assert.equal(level.value, 'debug')
})

test('OPS-19 without profiling there is nothing under /debug/pprof', async () => {
  const ask = await asking({ value: 'info' })
  for (const path of ['/debug/pprof/heap', '/debug/pprof/', '/debug/pprof', '/debug/pprof/profile?seconds=1'])
    assert.equal((await ask(path)).status, 404, path)
})

test('with profiling the profiles of memory and processor time are what pprof reads', async () => {
  const ask = await asking({ value: 'info' }, true)
  for (const path of ['/debug/pprof/heap', '/debug/pprof/allocs', '/debug/pprof/profile?seconds=0.2']) {
    const { status, bytes } = await ask(path)
    assert.equal(status, 200, path)
    const { gunzipSync } = await import('node:zlib')
    const plain = gunzipSync(bytes)
    // The first field of the message is a type of sample, of four bytes.
    assert.deepEqual([...plain.subarray(0, 2)], [0x0a, 4], path)
    assert.match(plain.toString('latin1'), path.includes('profile') ? /nanoseconds/ : /inuse_space/)
  }
  assert.equal((await ask('/debug/pprof/cmdline')).text, 'node\0tenon')
  for (const name of ['goroutine', 'block', 'threadcreate', 'trace', 'symbol'])
    assert.equal((await ask(`/debug/pprof/${name}`)).status, 501, name)
  assert.equal((await ask('/debug/pprof/nothing')).status, 404)
  assert.equal((await ask('/debug/pprof/profile?seconds=x')).status, 400)
})

test('SCA-5 from nine tenths of a limit on memory is collected, then metrics are reduced, then a warning names limit and sizing table', async () => {
  const clock = new VirtualClock()
  const warnings: (LogFields | undefined)[] = []
  const ending = new AbortController()
  let used = 80
  let collections = 0
  let reductions = 0
  const guard = guardMemory(
    {
      limits: [
        { name: 'container', limitBytes: 100, usedBytes: () => used, fix: 'raise it' },
        { name: 'heap', limitBytes: 1000, usedBytes: () => used, fix: 'unused' },
      ],
      collect: () => {
        collections++
        if (used < 95) used = 50
        if (reductions === 1 && used < 97) used = 60
      },
      reduce: () => {
        reductions++
      },
      clock,
      logger: { ...silentLogger, warn: (_message, fields) => warnings.push(fields) },
    },
    ending.signal,
  )
  await clock.advance(60_000)
  assert.equal(collections, 0)
  used = 91
  await clock.advance(20_000)
  assert.deepEqual([collections, reductions, warnings.length], [1, 0, 0])
  used = 96
  await clock.advance(20_000)
  assert.deepEqual([collections, reductions, warnings.length], [3, 1, 1])
  assert.match(String(warnings.pop()?.['fix']), /docs\/sizing\.md/)
  used = 99
  await clock.advance(60_000)
  assert.deepEqual([collections, reductions], [9, 1])
  const fix = 'raise it; docs/sizing.md says how much a cluster needs'
  assert.deepEqual(warnings, [{ limit: 'container', usedBytes: 99, limitBytes: 100, fix }])
  ending.abort()
  await guard
})

test('the revision comes from the image, else from the checkout; the namespace from the pod', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'tenon-commit-'))
  t.after(() => {
    rmSync(root, { recursive: true })
  })
  const full = '0123456789abcdef0123456789abcdef01234567'
  assert.equal(commitOf({ TENON_COMMIT: full }, root), '0123456')
  assert.equal(commitOf({ TENON_COMMIT: `${full}-dirty` }, root), '0123456-dirty')
  assert.equal(commitOf({ TENON_COMMIT: 'main' }, root), undefined)
  assert.equal(commitOf({}, root), undefined)
  mkdirSync(join(root, '.git/refs/heads'), { recursive: true })
  writeFileSync(join(root, '.git/HEAD'), 'ref: refs/heads/main\n')
  writeFileSync(join(root, '.git/packed-refs'), `# pack-refs\n${full} refs/heads/main\n`)
  assert.equal(commitOf({}, root), '0123456')
  writeFileSync(join(root, '.git/refs/heads/main'), `f${full.slice(1)}\n`)
  assert.equal(commitOf({}, root), 'f123456')
  writeFileSync(join(root, '.git/HEAD'), `${full}\n`)
  assert.equal(commitOf({}, root), '0123456')
  assert.equal(podNamespace(join(root, 'none')), undefined)
  writeFileSync(join(root, 'namespace'), 'kube-system\n')
  assert.equal(podNamespace(join(root, 'namespace')), 'kube-system')
})
