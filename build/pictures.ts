/** Copies the pictures of the README and docs/console.md from those that the page's tests take of a running cluster. */
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot } from './repository-root.ts'

/** Names in the documents, and in the tests. */
const pictures = new Map([
  ['console-overview', 'overview-light-1280'],
  ['console-overview-dark', 'overview-dark-1280'],
  ['console-pods', 'stuck-pods'],
  ['console-what-if', 'what-if-simulated'],
])

const [taken, shown] = ['dist/screenshots', 'docs/pictures'].map((path) => join(repositoryRoot, path)) as [
  string,
  string,
]
// Pictures of an earlier run must not be used.
for (const name of pictures.values()) rmSync(join(taken, `${name}.png`), { force: true })
const { status } = spawnSync(process.execPath, [join(repositoryRoot, 'checks/browser.ts'), 'story'], {
  cwd: repositoryRoot,
  env: { ...process.env, TENON_SCREENSHOTS: taken },
  stdio: 'inherit',
})
if (status !== 0) throw new Error('the tests of the page fail, so that there are no new pictures')
mkdirSync(shown, { recursive: true })
for (const [name, from] of pictures) {
  const file = join(taken, `${from}.png`)
  try {
    copyFileSync(file, join(shown, `${name}.png`))
  } catch (cause) {
    throw new Error(`${file} was not taken: is there a Chromium?`, { cause })
  }
}
