/** Finds Prometheus and promtool on PATH, or downloads Debian's package into the cache. */
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { homedir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Environment } from './components.ts'

/** Paths of the programs. */
export interface PrometheusPrograms {
  readonly prometheus: string
  readonly promtool: string
}

const names = ['prometheus', 'promtool'] as const

/** Undefined if they are not installed. */
export function findPrometheus(environment: Environment): PrometheusPrograms | undefined {
  const folders = (environment['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  const found = [...folders, cacheFolder(environment)].find((folder) =>
    names.every((name) => existsSync(join(folder, name))),
  )
  return found === undefined
    ? undefined
    : { prometheus: join(found, 'prometheus'), promtool: join(found, 'promtool') }
}

/**
 * Finds both programs; if necessary, downloads and unpacks Debian's package without installing it.
 * @returns why there are none, on a host without Debian's packages.
 */
export function ensurePrometheus(
  environment: Environment,
  progress: (line: string) => void,
): PrometheusPrograms | { readonly missing: string } {
  const found = findPrometheus(environment)
  if (found !== undefined) return found
  try {
    progress('fetching the Debian package prometheus')
    fetchPackage(cacheFolder(environment))
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : String(error)
    return {
      missing: `prometheus and promtool are not on PATH, and Debian's package is not to be had: ${why}`,
    }
  }
  return findPrometheus(environment) ?? { missing: "Debian's package prometheus has no programs" }
}

function cacheFolder(environment: Environment): string {
  const own = environment['TENON_CACHE_DIR']
  const cache = own || join(environment['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'tenon')
  return join(cache, 'prometheus')
}

/** The rest of the package, mainly a web interface, is not needed. */
function fetchPackage(into: string): void {
  mkdirSync(into, { recursive: true })
  const aside = mkdtempSync(join(into, '..', 'prometheus-'))
  const run = (program: string, args: readonly string[]) =>
    execFileSync(program, args, { cwd: aside, stdio: ['ignore', 'ignore', 'pipe'], timeout: 120_000 })
  try {
    try {
      run('apt-get', ['download', 'prometheus'])
    } catch {
      // On a fresh host the package lists are missing or outdated.
      run('apt-get', ['update'])
      run('apt-get', ['download', 'prometheus'])
    }
    const file = readdirSync(aside).find((name) => name.endsWith('.deb'))
    if (file === undefined) throw new Error('apt-get downloaded nothing')
    run('dpkg-deb', ['-x', file, 'unpacked'])
    for (const name of names) {
      const complete = join(aside, name)
      copyFileSync(join(aside, 'unpacked', 'usr', 'bin', name), complete)
      renameSync(complete, join(into, name))
    }
  } finally {
    rmSync(aside, { recursive: true, force: true })
  }
}
