import assert from 'node:assert/strict'
import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { parseManifests, readManifests } from './manifests.ts'

const named = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n${data}`

function dataOf(text: string): { readonly data: unknown; readonly warnings: readonly string[] } {
  const warnings: string[] = []
  const [manifest] = parseManifests('a.yaml', named(text), (message) => warnings.push(message))
  return { data: (manifest?.object as { data?: unknown } | undefined)?.data, warnings }
}

test('RPT-64 up -f reads what kubectl reads', () => {
  const folded = dataOf('  a: "first\n  second"\n  b: [\n  1,\n  2\n  ]\n')
  assert.deepEqual(folded.data, { a: 'first second', b: [1, 2] })
  const numbers = dataOf(
    '  mode: 0644\n  bits: 0b11\n  many: 1_000\n  text: "0644"\n  zero: 0\n  nine: 0999\n',
  )
  assert.deepEqual(numbers.data, { mode: 420, bits: 3, many: 1000, text: '0644', zero: 0, nine: 999 })
  const words = dataOf('  a: yes\n  b: Off\n  c: "no"\n  on: text\n')
  assert.deepEqual(words.data, { a: true, b: false, c: 'no', on: 'text' })
  const times = dataOf('  a: 2021-01-01\n  b: 12:30\n  c: ~\n')
  assert.deepEqual(times.data, { a: '2021-01-01', b: '12:30', c: null })
})

test('RPT-64 a key given twice is told, and the last one is used', () => {
  assert.deepEqual(dataOf('  a: x\n  a: y\n'), {
    data: { a: 'y' },
    warnings: ['a.yaml:6: key "a" is already set in this map; the last one is used'],
  })
})

test('RPT-64 what cannot be read costs only itself; when nothing can be, that is an error', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), 'tenon-manifests-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  await symlink('nowhere.yaml', join(folder, 'link.yaml'))
  await writeFile(join(folder, 'broken.yaml'), 'a: "x')
  const warnings: string[] = []
  const warn = (message: string) => warnings.push(message)
  await assert.rejects(readManifests(['.'], folder, warn), /^CliError: cannot read link\.yaml|broken\.yaml/)
  await writeFile(join(folder, 'good.yaml'), named('  a: b\n'))
  const manifests = await readManifests(['.'], folder, warn)
  assert.deepEqual(
    manifests.map(({ source }) => source),
    ['good.yaml:1'],
  )
  assert.deepEqual(warnings, [
    'broken.yaml:1: not valid YAML: Missing closing "quote; skipped',
    'cannot read link.yaml: no such file or directory; skipped',
  ])
})
