import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const main = fileURLToPath(new URL('main.ts', import.meta.url))

test('each command of the world tells its flags', () => {
  const flagsOf = (command: string) =>
    execFileSync(process.execPath, [main, command, '--help'], { encoding: 'utf8' }).match(/^ {2}--[a-z-]+/gm)
  assert.equal(flagsOf('one')?.length, 13)
  assert.equal(flagsOf('many')?.length, 9)
  assert.equal(flagsOf('planted')?.length, 6)
  assert.equal(flagsOf('autoscaler')?.length, 3)
})
