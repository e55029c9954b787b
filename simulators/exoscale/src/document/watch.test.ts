import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { documentMissing } from './api-document.test-support.ts'

const watch = join(import.meta.dirname, 'watch.test-support.ts')
const root = join(import.meta.dirname, '../../../..')

/** A process that is watched and tells of one call with this request body. */
function sending(body: string): { readonly status: number | null; readonly stderr: string } {
  const exchange = {
    method: 'PUT',
    path: '/v2/instance/00000000-0000-4000-8000-000000000001',
    headers: { 'user-agent': 'a client', 'content-type': 'application/json' },
    body,
    status: 404,
    reply: { message: 'not found' },
  }
  const script = `import { channel } from 'node:diagnostics_channel'
    channel('tenon.exoscale.exchange').publish(${JSON.stringify(exchange)})`
  const options = { encoding: 'utf8' } as const
  return spawnSync(process.execPath, ['--import', watch, '--input-type=module', '--eval', script], options)
}

test('a watched process fails on a call that is not as the API document says', {
  skip: documentMissing,
}, () => {
  assert.deepEqual([sending('{"labels":{"a":"b"}}').status], [0])
  const { status, stderr } = sending('{"label":{}}')
  assert.notEqual(status, 0)
  assert.match(stderr, /request of update-instance: \$\.label is not declared/)
})

test('npm test watches every test file', () => {
  const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>
  }
  assert.equal(scripts['test'], 'node checks/tests.ts')
  assert.match(readFileSync(join(root, 'checks/tests.ts'), 'utf8'), /watch\.test-support\.ts/)
})
