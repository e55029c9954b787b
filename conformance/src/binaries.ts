import { execFileSync, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { basename, delimiter, dirname, join, relative } from 'node:path'
import type { Clock } from '@tenon/runtime'
import {
  buildFlags,
  buildHash,
  type ComponentName,
  type Environment,
  type GoModule,
  goModules,
  moduleFolder,
  pinnedVersion,
} from './components.ts'

export interface BuildOptions {
  readonly environment: Environment
  readonly clock: Clock
  /** Called with lines about what is being built and for how long. */
  readonly progress: (line: string) => void
}

/** Path of each binary. */
export type Binaries = Readonly<Record<ComponentName, string>>

/** Go is not installed. `missing` are the binaries that were neither found nor built. */
export class GoMissingError extends Error {
  readonly code = 'GO_MISSING'
  readonly missing: readonly ComponentName[]

  constructor(missing: readonly ComponentName[]) {
    super(
      `Go 1.26 or newer is needed to build ${missing.join(', ')}, and no "go" was found. ` +
        'Install it from https://go.dev/dl/ and put it on PATH, ' +
        'or set KUBEBUILDER_ASSETS to a folder that holds these binaries.',
    )
    this.missing = missing
  }
}

/** `go build` failed; its output is on stderr. */
export class BuildFailedError extends Error {
  readonly code = 'BUILD_FAILED'
}

/** The folder that keeps built binaries across clones: TENON_CACHE_DIR, or `tenon` in the user's cache. */
function cacheFolder(environment: Environment): string {
  const own = environment['TENON_CACHE_DIR']
  if (own) return join(own, 'control-plane')
  return join(environment['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'tenon', 'control-plane')
}

/** The subset of `names` that is neither in KUBEBUILDER_ASSETS nor already built. */
export function missingBinaries(
  names: readonly ComponentName[],
  environment: Environment,
): readonly ComponentName[] {
  return names.filter((name) => !existsSync(locate(name, environment)))
}

/**
 * Builds the missing binaries and returns the paths of all.
 * @throws GoMissingError, BuildFailedError
 */
export async function ensureBinaries(
  names: readonly ComponentName[],
  options: BuildOptions,
): Promise<Partial<Binaries>> {
  const missing = missingBinaries(names, options.environment)
  if (missing.length > 0) {
    const go = findGo(options.environment)
    if (go === undefined) throw new GoMissingError(missing)
    for (const module of goModules(options.environment)) {
      const wanted = missing.filter((name) => name in module.packages)
      if (wanted.length > 0) await build(go, module, wanted, options)
    }
  }
  return Object.fromEntries(names.map((name) => [name, locate(name, options.environment)]))
}

/** The `go` command: on PATH, in GOROOT, or where Go's installer puts it. */
export function findGo(environment: Environment): string | undefined {
  const folders = (environment['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '')
  if (environment['GOROOT']) folders.push(join(environment['GOROOT'], 'bin'))
  folders.push('/usr/local/go/bin')
  return folders.map((folder) => join(folder, 'go')).find((file) => existsSync(file))
}

function locate(name: ComponentName, environment: Environment): string {
  const assets = environment['KUBEBUILDER_ASSETS']
  const given = assets ? join(assets, name) : undefined
  if (given !== undefined && existsSync(given)) return given
  return join(binFolder(moduleOf(name, environment), environment), name)
}

function moduleOf(name: ComponentName, environment: Environment): GoModule {
  const module = goModules(environment).find((candidate) => name in candidate.packages)
  if (module === undefined) throw new Error(`no Go module builds ${name}`)
  return module
}

function binFolder(module: GoModule, environment: Environment): string {
  const platform = `${process.platform}-${process.arch}`
  return join(cacheFolder(environment), `${module.folder}-${buildHash(module, platform)}`, 'bin')
}

async function build(
  go: string,
  module: GoModule,
  names: readonly ComponentName[],
  options: BuildOptions,
): Promise<void> {
  const { clock, environment, progress } = options
  const bin = binFolder(module, environment)
  mkdirSync(bin, { recursive: true })
  // Built in a temporary place and then moved, so that an interrupted build leaves no partial binary behind.
  const aside = mkdtempSync(join(bin, '..', 'build-'))
  const what = `${module.folder} ${pinnedVersion(module)} (${names.join(', ')})`
  const start = clock.monotonic()
  const seconds = () => Math.round((clock.monotonic() - start) / 1000)
  progress(`building ${what}`)
  const cancel = every(clock, 15_000, () => progress(`building ${what}: ${seconds()} s so far`))
  try {
    // Before the programs, so that if one of them exists, its manifests do too.
    if (module.manifests !== undefined) keepManifests(go, module, module.manifests, bin, environment)
    for (const name of names) {
      await goBuild(go, module, module.packages[name] ?? '', join(aside, name), environment)
      renameSync(join(aside, name), join(bin, name))
      progress(`built ${name}: ${seconds()} s so far`)
    }
  } finally {
    cancel()
    rmSync(aside, { recursive: true, force: true })
  }
}

/** Copies the folders out of Go's module cache, so that they outlive the cache. */
function keepManifests(
  go: string,
  module: GoModule,
  folders: NonNullable<GoModule['manifests']>,
  bin: string,
  environment: Environment,
): void {
  const options = {
    cwd: moduleFolder(module),
    env: { ...environment, ...goSettings },
    encoding: 'utf8',
  } as const
  execFileSync(go, ['mod', 'download', module.path], options)
  const root = execFileSync(go, ['list', '-m', '-f', '{{.Dir}}', module.path], options).trim()
  for (const [name, folder] of Object.entries(folders)) {
    const from = join(root, folder)
    for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
      if (!entry.isFile()) continue
      const to = join(manifestsOf(join(bin, name)), relative(from, entry.parentPath))
      mkdirSync(to, { recursive: true })
      // Written instead of copied: Go's module cache is read-only, and a later build must be able to write here.
      writeFileSync(join(to, entry.name), readFileSync(join(entry.parentPath, entry.name)))
    }
  }
}

/** The manifests of the program at `binary`. */
export function manifestsOf(binary: string): string {
  return join(dirname(binary), '..', 'manifests', basename(binary))
}

/** The user's own settings must not change what is built under the same hash. */
const goSettings = { CGO_ENABLED: '0', GOFLAGS: '', GOWORK: 'off' } as const

function goBuild(
  go: string,
  module: GoModule,
  target: string,
  output: string,
  environment: Environment,
): Promise<void> {
  const child = spawn(go, ['build', ...buildFlags(module), '-o', output, target], {
    cwd: moduleFolder(module),
    env: { ...environment, ...goSettings },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('exit', (code, signal) => {
      if (code === 0) resolve()
      else reject(new BuildFailedError(`go build ${target} failed (${signal ?? `exit code ${code}`})`))
    })
  })
}

function every(clock: Clock, ms: number, action: () => void): () => void {
  let cancel = () => {}
  const arm = () => {
    cancel = clock.after(ms, () => {
      action()
      arm()
    })
  }
  arm()
  return () => cancel()
}
