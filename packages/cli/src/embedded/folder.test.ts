import assert from 'node:assert/strict'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ppid } from 'node:process'
import { test } from 'node:test'
import { takeClusterFolder, takeFolder } from './folder.ts'

test('PGE-15 a folder of a running process is passed over, one of a process that is gone is taken', async (t) => {
  const cwd = await mkdtemp(join(tmpdir(), 'tenon-folder-'))
  t.after(() => rm(cwd, { recursive: true }))
  const own = join(cwd, '.tenon')
  const first = await takeClusterFolder(cwd)
  assert.deepEqual([first.path, first.besides], [own, undefined])
  // The process that runs the tests stands for another cluster.
  await writeFile(join(own, 'lock'), String(ppid))
  const second = await takeClusterFolder(cwd)
  assert.deepEqual([second.path, second.besides], [join(own, '2'), ppid])
  assert.equal(await takeFolder(own), ppid)
  await second.release()
  for (const left of ['', 'x', '-1', '1e309', String(2 ** 31 - 2)]) {
    await writeFile(join(own, 'lock'), left)
    assert.equal((await takeClusterFolder(cwd)).path, own, `a lock with ${left}`)
  }
  await first.release()
  assert.deepEqual(await readdir(own), ['2'])
})
