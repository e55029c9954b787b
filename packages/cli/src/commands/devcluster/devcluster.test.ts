import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { settingsText } from './run.ts'

test('a shell reads every directory name back as it is', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-settings-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  const file = join(folder, 'controller.env')
  for (const name of [
    'plain',
    'two words',
    "it's",
    '"quoted"',
    '$HOME',
    '`date`',
    'a\\b',
    'new\nline',
    'é;&|#!',
    '',
  ]) {
    await writeFile(file, settingsText({ KUBECONFIG: name, AFTER: 'x' }))
    const script = `set -a; . '${file}'; printf '%s,%s' "$KUBECONFIG" "$AFTER"`
    const { stdout, stderr } = spawnSync('sh', ['-c', script], { encoding: 'utf8' })
    assert.deepEqual([stdout, stderr], [`${name},x`, ''])
  }
})
