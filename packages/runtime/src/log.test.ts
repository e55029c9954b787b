import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { JsonLogger, type JsonLoggerOptions } from './log-json.ts'
import { openLogOutputs } from './log-outputs.ts'
import { type LogLevel, Secret, StructuredError } from './log.ts'
import { VirtualClock } from './virtual-clock.ts'

function open(value: LogLevel = 'info', options: JsonLoggerOptions = {}) {
  const clock = new VirtualClock()
  const lines: string[] = []
  const level = { value }
  const logger = new JsonLogger(clock, (line) => lines.push(line), level, options)
  const fields = (at = -1) => JSON.parse(lines.at(at) ?? '') as Readonly<Record<string, unknown>>
  return { clock, lines, level, logger, fields }
}

test('OPS-51 every line is one JSON object with level, time, logger and message, in this order', () => {
  const { logger, lines, fields } = open('debug', { commit: 'abcdef1' })
  logger.debug('a')
  logger.info('b', { NodePool: { name: 'default' }, level: 'spoilt', message: 'spoilt' })
  logger.warn('c', { size: 12n, secret: new Secret('x') })
  logger.with({ zone: 'a' }).error('d\n', { error: new Error('no\nluck') })
  for (const line of lines) assert.match(line, /^\{.*\}\n$/)
  const heads = lines.map((_, at) => Object.keys(fields(at)).slice(0, 6))
  for (const head of heads) assert.deepEqual(head, ['level', 'time', 'logger', 'caller', 'message', 'commit'])
  assert.deepEqual(
    lines.map((_, at) => [fields(at)['level'], fields(at)['message']]),
    [
      ['DEBUG', 'a'],
      ['INFO', 'b'],
      ['WARN', 'c'],
      ['ERROR', 'd\n'],
    ],
  )
  assert.equal(fields(0)['time'], '2026-01-01T00:00:00.000Z')
  assert.equal(fields(0)['logger'], 'controller')
  assert.deepEqual([fields(2)['size'], fields(2)['secret']], ['12', '[redacted]'])
  assert.deepEqual([fields(3)['zone'], fields(3)['error']], ['a', 'no\nluck'])
})

test('OPS-52 at info there is no caller and nothing of debug; at debug the caller is where the line is logged', () => {
  const { logger, lines, level, fields } = open('info')
  logger.debug('hidden')
  logger.info('shown')
  assert.equal(lines.length, 1)
  assert.ok(!('caller' in fields()))
  assert.ok(!('commit' in fields()))
  level.value = 'debug'
  logger.with({ a: 1 }).debug('shown now')
  assert.match(String(fields()['caller']), /^src\/log\.test\.ts:\d+$/)
  level.value = 'error'
  logger.warn('hidden again')
  assert.equal(lines.length, 2)
})

test('OPS-53 the values of a structured error are on the line, and at the end of its text', () => {
  const { logger, fields } = open()
  const inner = new StructuredError('quota used up', { zone: 'a', limit: 5 })
  logger.error('Reconciler error', { error: inner })
  assert.deepEqual(
    [fields()['error'], fields()['zone'], fields()['limit']],
    ['quota used up (limit=5, zone=a)', 'a', 5],
  )
  const outer = new StructuredError('cannot launch', { zone: 'b', NodeClaim: 'x' }, { cause: inner })
  logger.error('Reconciler error', { error: outer })
  assert.equal(fields()['error'], 'cannot launch (NodeClaim=x, limit=5, zones=["a","b"])')
  assert.deepEqual([fields()['zones'], fields()['NodeClaim'], fields()['zone']], [['a', 'b'], 'x', undefined])
})

test('OPS-54 of a thousand equal messages in a second about a hundred and nine are written', () => {
  const { logger, lines } = open('debug')
  for (let n = 0; n < 1000; n++) logger.with({ n }).info('again', { n })
  assert.equal(lines.length, 109)
  logger.info('another')
  logger.debug('again')
  assert.equal(lines.length, 111)
})

test('a second later equal messages are written again', async () => {
  const { logger, lines, clock } = open()
  for (let n = 0; n < 150; n++) logger.info('again')
  assert.equal(lines.length, 100)
  await clock.advance(1000)
  for (let n = 0; n < 50; n++) logger.info('again')
  assert.equal(lines.length, 150)
})

test('durations are written as Go prints them, under the key without its unit', () => {
  const { logger, fields } = open()
  const durations: readonly (readonly [number, string])[] = [
    [0, '0s'],
    [0.25, '0.25ms'],
    [12.3456, '12.346ms'],
    [1500, '1.5s'],
    [90_000, '1m30s'],
    [3_600_000, '1h0m0s'],
    [-1500, '-1.5s'],
    [Number.POSITIVE_INFINITY, 'Infinity'],
  ]
  for (const [durationMs, text] of durations) {
    logger.info('took', { durationMs })
    assert.deepEqual([fields()['duration'], fields()['durationMs']], [text, undefined])
  }
})

test('parts of the program are named after a dot', () => {
  const { logger, fields } = open()
  logger.with({ logger: 'events' }).with({ logger: 'queue', reason: 'x' }).info('a')
  assert.deepEqual([fields()['logger'], fields()['reason']], ['controller.events.queue', 'x'])
})

test('values that cannot be written cost the line its fields, and are told elsewhere', () => {
  const broken: string[] = []
  const { logger, fields } = open('info', { onBroken: (text) => broken.push(text) })
  const circle: { self?: unknown } = {}
  circle.self = circle
  logger.info('round', { circle })
  assert.deepEqual(Object.keys(fields()), ['level', 'time', 'logger', 'message'])
  assert.match(broken.join(''), /^a log line has values that cannot be written: .*circular/s)
})

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'tenon-log-'))
  t.after(() => {
    rmSync(path, { recursive: true })
  })
  return path
}

test('lines go to standard streams and files, which are appended to', (t) => {
  const file = join(folder(t), 'log')
  const [out, err]: [string[], string[]] = [[], []]
  const streams = { out: (text: string) => out.push(text), err: (text: string) => err.push(text) }
  for (const text of ['a\n', 'b\n']) {
    const outputs = openLogOutputs(`stdout,stderr,${file}`, streams)
    outputs.write(text)
    outputs.close()
    outputs.write('late\n')
  }
  assert.equal(readFileSync(file, 'utf8'), 'a\nb\n')
  assert.deepEqual(
    [out, err],
    [
      ['a\n', 'late\n', 'b\n', 'late\n'],
      ['a\n', 'late\n', 'b\n', 'late\n'],
    ],
  )
})

test('an output that cannot be opened is named', (t) => {
  const streams = { out: () => undefined, err: () => undefined }
  assert.throws(
    () => openLogOutputs(join(folder(t), 'none', 'log'), streams),
    /ENOENT.*none.log.*; use stdout/,
  )
  assert.throws(() => openLogOutputs('stdout,', streams), /^Error: a path is empty; use stdout/)
})
