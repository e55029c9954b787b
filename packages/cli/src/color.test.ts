/** Colours of commands, as a user runs them. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { writeSnapshot } from '@tenon/ask'
import { aNode, aPending, aPool, aSnapshot, aType } from '@tenon/ask/test-clusters'
import { runCommand } from './testing/command.test-support.ts'

let folder: string
let file: string

before(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tenon-color-'))
  file = join(folder, 'cluster.jsonl')
  const objects = [aPool('blue'), aNode('alone', '1'), aPending('a', { cpu: '9' }, {}, 'web')]
  await writeSnapshot(file, aSnapshot(objects, [aType('small', 1)]))
})

after(() => rm(folder, { recursive: true }))

const escape = '\u001b['
const colored: readonly (readonly string[])[] = [
  ['get', 'nodes'],
  ['explain', 'pod', 'a'],
  ['explain', 'pods'],
  ['cost'],
  ['simulate', '--delete', 'nodepool/blue'],
]

for (const words of colored) {
  const run = async (isTerminal: boolean, env: Record<string, string>, ...flags: readonly string[]) => {
    const { code, out, err } = await runCommand([...words, '-s', file, ...flags], { isTerminal, env })
    assert.equal(code, 0, err)
    return out
  }

  test(`EXP-29 ${words.join(' ')} has colours on a terminal without NO_COLOR, or where they are asked for`, async () => {
    const plain = await run(false, {})
    assert.ok(!plain.includes(escape))
    assert.equal(await run(true, { NO_COLOR: '1' }), plain)
    assert.equal(await run(true, {}, '--color', 'never'), plain)
    const painted = await run(true, {})
    assert.ok(painted.includes(escape), painted)
    assert.equal(await run(false, { NO_COLOR: '1' }, '--color=always'), painted)
    // Only the colours differ: columns stay where they are.
    // oxlint-disable-next-line no-control-regex
    assert.equal(painted.replaceAll(/\u001b\[\d+m/g, ''), plain)
    assert.ok(!(await run(true, {}, '-o', 'yaml')).includes(escape))
  })
}

test('what is in the way is red, and what would help is green', async () => {
  const { out } = await runCommand(['explain', 'pod', 'a', '-s', file], { isTerminal: true })
  assert.ok(out.includes(`\n${escape}31m✗ NodePool blue: `), out)
})
