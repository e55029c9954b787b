import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { execPath, ppid } from 'node:process'
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

test('PGE-15 a process that got the ID of a killed one keeps no folder from being used', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-folder-'))
  t.after(() => rm(folder, { recursive: true }))
  await writeFile(join(folder, 'lock'), `${ppid} 1`)
  assert.notEqual(await takeFolder(folder), ppid)
})

const program = `
  const { takeClusterFolder } = await import(${JSON.stringify(new URL('folder.ts', import.meta.url).href)})
  process.stdin.once('data', async () => console.log((await takeClusterFolder(process.argv[1])).path))
  console.log('ready')`

test('PGE-15 clusters that start at one instant, where a killed one left its lock, get a folder each', async (t) => {
  const cwd = await mkdtemp(join(tmpdir(), 'tenon-folder-'))
  t.after(() => rm(cwd, { recursive: true }))
  await mkdir(join(cwd, '.tenon'))
  await writeFile(join(cwd, '.tenon/lock'), '')
  const starts = Array.from({ length: 4 }, () => {
    const child = spawn(execPath, ['--input-type=module', '-e', program, cwd], {
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    t.after(() => child.kill('SIGKILL'))
    return child
  })
  const lines = async () => {
    const read = await Promise.all(starts.map(({ stdout }) => once(stdout, 'data')))
    return read.map(([data]) => String(data).trim())
  }
  await lines()
  const paths = lines()
  for (const { stdin } of starts) stdin.write('go')
  const folders = ['.tenon', '.tenon/2', '.tenon/3', '.tenon/4']
  assert.deepEqual(
    (await paths).toSorted(),
    folders.map((folder) => join(cwd, folder)),
  )
  assert.deepEqual((await readdir(join(cwd, '.tenon'))).toSorted(), ['2', '3', '4', 'lock'])
})
