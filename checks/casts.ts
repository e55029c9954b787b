/**
 * Finds tests that force a type with a double assertion. Tests should build their subject from few
 * dependencies, or assert to a narrower type. Exits 1 if there is one.
 */
import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { resolve } from 'node:path'

const forced = /\bas unknown as\b/

async function check(): Promise<void> {
  const root = resolve(import.meta.dirname, '..')
  let violations = 0
  for await (const path of glob(
    '{packages,simulators,test,conformance,examples}/**/*.{test,test-support}.ts',
    {
      cwd: root,
      exclude: ['**/node_modules/**'],
    },
  )) {
    for (const [index, line] of readFileSync(resolve(root, path), 'utf8').split('\n').entries()) {
      if (!forced.test(line)) continue
      violations++
      console.error(`${path}:${index + 1} forces a type: build the object from what the test needs`)
    }
  }
  console.log(`casts: ${violations} forced in tests`)
  process.exitCode = violations === 0 ? 0 : 1
}

await check()
