/**
 * Runs the page's tests in a real Chromium, or those whose paths contain one of the given words. Installs
 * Debian's package if it is missing; where that is impossible, it prints so and tests nothing.
 */
import { spawnSync } from 'node:child_process'
import { accessSync, constants, globSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const programs = ['chromium', 'chromium-browser', 'google-chrome']

function found(): string | undefined {
  const given = process.env['TENON_CHROMIUM']
  if (given !== undefined) return given
  const folders = (process.env['PATH'] ?? '').split(delimiter)
  return programs.flatMap((name) => folders.map((folder) => join(folder, name))).find(isProgram)
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** @returns why it could not be installed; undefined on success. */
function installed(): string | undefined {
  const apt = (...args: readonly string[]) =>
    spawnSync('apt-get', [...args], {
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
      encoding: 'utf8',
      timeout: 300_000,
    })
  const install = () => apt('install', '--yes', '--no-install-recommends', 'chromium')
  const first = install()
  if (first.error !== undefined) return `apt-get: ${first.error.message}`
  if (first.status === 0) return undefined
  // On a fresh host the package lists are missing or outdated.
  apt('update')
  const { status, stderr } = install()
  return status === 0 ? undefined : (stderr.trim().split('\n').at(-1) ?? `apt-get ended with ${status}`)
}

function main(): number {
  const words = process.argv.slice(2)
  const files = globSync('packages/*/src/**/browser/*.test.ts', { cwd: root })
    .filter((file) => words.length === 0 || words.some((word) => file.includes(word)))
    .sort()
  if (files.length === 0) {
    process.stderr.write(`no test of the page has ${words.join(' or ')} in its path\n`)
    return 1
  }
  const problem = found() === undefined ? installed() : undefined
  const chromium = found()
  if (chromium === undefined) {
    process.stdout.write(
      `browser: SKIPPED, nothing of the page was tested: no Chromium (${problem ?? 'none found'})\n`,
    )
    return 0
  }
  // All processes and threads of the tests share compiled code.
  const compileCache = process.env['NODE_COMPILE_CACHE'] ?? join(tmpdir(), 'node-compile-cache')
  const env = { ...process.env, NODE_COMPILE_CACHE: compileCache, TENON_CHROMIUM: chromium }
  const play = (atOnce: number): number => {
    const args = ['--test', `--test-concurrency=${atOnce}`, ...files]
    return spawnSync(process.execPath, args, { cwd: root, env, stdio: 'inherit' }).status ?? 1
  }
  const code = play(2)
  if (code === 0 || process.env['TENON_RUN_AGAIN'] !== '1') return code
  process.stdout.write('browser: FAILED, run again with one file at a time\n')
  return play(1)
}

process.exitCode = main()
