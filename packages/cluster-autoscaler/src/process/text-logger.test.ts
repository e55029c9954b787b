import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Secret, VirtualClock } from '@tenon/runtime'
import type { LogOptions } from '../options/process-options.ts'
import { openLogs } from './logs.ts'

function logged(
  options: Partial<LogOptions>,
  write: (logger: ReturnType<typeof openLogs>['logger']) => void,
): string {
  let text = ''
  const all: LogOptions = { verbosity: 0, format: 'text', file: '', standardErrorFrom: 'INFO', ...options }
  const logs = openLogs(all, new VirtualClock(), (line) => (text += line))
  write(logs.logger)
  logs.close()
  return text
}

test('a line of text has severity, time, message and values', () => {
  assert.equal(
    logged({}, (logger) => {
      logger
        .with({ nodeGroup: 'a b' })
        .info('increased', { delta: 2, tookMs: 61_500, error: new Error('no "x"') })
      logger.warn('odd', { key: new Secret('hidden'), big: 5n })
      logger.error('wrong')
      logger.debug('detail')
    }),
    [
      'I0101 00:00:00.000000       1 cluster-autoscaler] "increased" nodeGroup="a b" delta=2 took="1m1.5s" error="no \\"x\\""',
      'W0101 00:00:00.000000       1 cluster-autoscaler] "odd" key="[redacted]" big=5',
      'E0101 00:00:00.000000       1 cluster-autoscaler] "wrong"',
      '',
    ].join('\n'),
  )
})

test('details are written from verbosity 3 on, in either format', () => {
  for (const [verbosity, isWritten] of [
    [2, false],
    [3, true],
    [4, true],
  ] as const)
    for (const format of ['text', 'json'] as const) {
      const text = logged({ verbosity, format }, (logger) => {
        logger.debug('detail')
      })
      assert.equal(text.includes('detail'), isWritten)
    }
})

test('JSON has the same, and only what is severe enough reaches standard error beside a file', () => {
  for (const format of ['text', 'json'] as const) {
    const text = logged({ format, standardErrorFrom: 'ERROR' }, (logger) => {
      logger.info('one')
      logger.warn('two')
      logger.error('three')
    })
    assert.equal(text.split('\n').length, 2)
    assert.match(text, /three/)
  }
})

test('a value that cannot be written does not lose the line', () => {
  const around: Record<string, unknown> = {}
  around['self'] = around
  assert.match(
    logged({}, (logger) => {
      logger.info('message', { around })
    }),
    /"message" around="\(cannot be written\)"\n$/,
  )
})
