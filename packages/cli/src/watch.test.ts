/** A few seconds of the watch soak, which runs for ten minutes as `node bench/watch-soak.ts`. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'

test('kubectl, an informer and a plain watch see every version once, in order, under churn', () => {
  const soak = join(import.meta.dirname, '../../../bench/watch-soak.ts')
  const { status, stdout, stderr } = spawnSync(process.execPath, [soak, '--minutes', '0.08'], {
    encoding: 'utf8',
    timeout: 60_000,
  })
  assert.equal(stderr, '')
  assert.equal(status, 0, stdout)
  assert.match(stdout, / 0 violations\n$/)
})
