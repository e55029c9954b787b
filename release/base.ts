/**
 * The files of the image below the program: a few packages of Debian and Node, each pinned by its hash, no shell and no
 * package manager. The Dockerfile runs it (`node release/base.ts --arch arm64 --outdir DIR`), and so does the release.
 */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  globSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { repositoryRoot } from '../build/repository-root.ts'
import { pathsIn, sha256 } from './oci.ts'

/** As Go, containers and Debian name them. */
export const architectures = ['amd64', 'arm64'] as const
export type Architecture = (typeof architectures)[number]

/** A package of Debian with the hash of its file for each architecture. */
export type DebianPackage = Readonly<Record<'name' | 'version' | Architecture, string>>

const lockFile = join(import.meta.dirname, 'debian-packages.json')
export const debianPackages = JSON.parse(readFileSync(lockFile, 'utf8')) as readonly DebianPackage[]

/** What is kept of the packages: libraries, licenses, and the name of the distribution for scanners. */
const kept = [
  /^lib(64)?\//,
  /^usr\/lib\/[^/]+\/libstdc/,
  /^(etc|usr\/lib)\/os-release$/,
  /^usr\/share\/common-licenses\//,
  /^usr\/share\/doc\/[^/]+(\/copyright)?$/,
]

const accounts = {
  'etc/passwd': 'root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n',
  'etc/group': 'root:x:0:\nnonroot:x:65532:\n',
  'etc/nsswitch.conf': 'passwd: files\ngroup: files\nhosts: files dns\n',
}

/** The package of npm with Node, and its hash in the lock file. */
export function nodePackage(architecture: Architecture): {
  readonly name: string
  readonly version: string
  readonly integrity: string
} {
  const name = `node-linux-${architecture === 'amd64' ? 'x64' : architecture}`
  const lock = JSON.parse(readFileSync(join(repositoryRoot, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<
      Record<string, { readonly version: string; readonly integrity: string } | undefined>
    >
  }
  const locked = lock.packages[`node_modules/${name}`]
  if (locked === undefined) throw new Error(`package-lock.json has no ${name}`)
  return { name, version: locked.version, integrity: locked.integrity }
}

/**
 * Makes the files of an architecture anew in `outdir`.
 * @throws Error if a package cannot be had, or is not the pinned one.
 */
function writeBase(architecture: Architecture, outdir: string): void {
  rmSync(outdir, { recursive: true, force: true })
  // Beside it, so that files can be moved.
  const folder = `${outdir}.unpacked`
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  try {
    unpackDebian(debianFiles(architecture), join(folder, 'debian'), outdir)
    unpackNode(architecture, folder, outdir)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  for (const [path, text] of Object.entries(accounts)) put(outdir, path, text)
}

/** Unpacks what is kept of the packages, and notes that they are there, where scanners look. */
function unpackDebian(files: readonly string[], folder: string, outdir: string): void {
  for (const file of files) {
    execFileSync('dpkg-deb', ['--extract', file, folder])
    const control = execFileSync('dpkg-deb', ['--field', file], { encoding: 'utf8' })
    put(outdir, `var/lib/dpkg/status.d/${/^Package: (.+)$/m.exec(control)?.[1] ?? ''}`, control)
  }
  for (const path of pathsIn(folder)) {
    const isFolder = lstatSync(join(folder, path)).isDirectory()
    if (isFolder || path.includes('/gconv/') || !kept.some((each) => each.test(path))) continue
    mkdirSync(dirname(join(outdir, path)), { recursive: true })
    renameSync(join(folder, path), join(outdir, path))
  }
  // What the package's script does when it is installed.
  const authorities = globSync('usr/share/ca-certificates/mozilla/*.crt', { cwd: folder }).toSorted()
  const bundle = authorities.map((path) => `${readFileSync(join(folder, path), 'utf8').trim()}\n`).join('')
  put(outdir, 'etc/ssl/certs/ca-certificates.crt', bundle)
}

function put(folder: string, path: string, text: string): void {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), text)
}

function unpackNode(architecture: Architecture, folder: string, outdir: string): void {
  const { name, version, integrity } = nodePackage(architecture)
  const args = ['pack', `${name}@${version}`, '--loglevel=error', '--pack-destination', folder]
  const tarball = join(
    folder,
    execFileSync('npm', args, { encoding: 'utf8', cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] }).trim(),
  )
  const found = `sha512-${createHash('sha512').update(readFileSync(tarball)).digest('base64')}`
  if (found !== integrity)
    throw new Error(`${name} ${version} is ${found}; package-lock.json has ${integrity}`)
  execFileSync('tar', ['-xzf', tarball, '-C', folder, 'package/bin/node', 'package/LICENSE'])
  for (const [from, to] of [
    ['package/bin/node', 'usr/local/bin/node'],
    ['package/LICENSE', 'usr/share/doc/node/copyright'],
  ] as const) {
    mkdirSync(dirname(join(outdir, to)), { recursive: true })
    renameSync(join(folder, from), join(outdir, to))
  }
}

/** The files of the pinned packages, kept in the user's cache under their hashes. */
function debianFiles(architecture: Architecture): readonly string[] {
  const cache = join(
    process.env['TENON_CACHE_DIR'] ??
      join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'tenon'),
    'debian',
  )
  const fileOf = (each: DebianPackage) => join(cache, `${each[architecture]}.deb`)
  const missing = debianPackages.filter((each) => !existsSync(fileOf(each)))
  if (missing.length > 0) {
    mkdirSync(cache, { recursive: true })
    const wanted = missing.map(({ name, version }) => `${name}:${architecture}=${version}`)
    const found = download(architecture, wanted)
    for (const each of missing) {
      const file = found.find((path) => sha256(readFileSync(path)) === each[architecture])
      if (file === undefined) throw new Error(`${each.name} ${each.version} is not the pinned file`)
      // A copy and a move: another process may do the same, and the cache may be on another disk.
      const partial = join(cache, `${each[architecture]}.${process.pid}`)
      cpSync(file, partial)
      renameSync(partial, fileOf(each))
    }
  }
  // Somebody may have written into the cache.
  for (const each of debianPackages)
    if (sha256(readFileSync(fileOf(each))) !== each[architecture])
      throw new Error(`${fileOf(each)} is not ${each.name} ${each.version}; delete it`)
  return debianPackages.map(fileOf)
}

/** Downloads packages from the sources of apt of this host, which must be Debian 12, without a trace on the host. */
function download(architecture: Architecture, packages: readonly string[]): readonly string[] {
  const folder = mkdtempSync(join(tmpdir(), 'tenon-apt-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  for (const path of ['lists/partial', 'cache/archives/partial', 'packages'])
    mkdirSync(join(folder, path), { recursive: true })
  const options = [
    ['Dir::State::lists', join(folder, 'lists')],
    ['Dir::Cache', join(folder, 'cache')],
    ['Dir::State::status', '/dev/null'],
    ['APT::Architecture', architecture],
    ['APT::Architectures', architecture],
    ['APT::Sandbox::User', 'root'],
    ['Acquire::Languages', 'none'],
  ].flatMap(([name, value]) => ['-o', `${name}=${value}`])
  const apt = (...args: readonly string[]) => {
    try {
      execFileSync('apt-get', ['--quiet', ...options, ...args], {
        cwd: join(folder, 'packages'),
        encoding: 'utf8',
        stdio: 'pipe',
      })
    } catch (error) {
      const { stderr = '', message } = error as Error & { readonly stderr?: string }
      throw new Error(
        `apt-get ${args.join(' ')}: ${stderr || message}\nThe packages of the image come from the apt sources of this host, which must have those of Debian 12 (release/debian-packages.json). If Debian has newer versions now: npm run release -- --update-base`,
        { cause: error },
      )
    }
  }
  apt('update')
  apt('download', ...packages)
  return globSync('packages/*.deb', { cwd: folder }).map((path) => join(folder, path))
}

/** Pins the newest versions that the apt sources of this host have. */
export function updateBase(): readonly DebianPackage[] {
  const files = architectures.map((architecture) =>
    download(
      architecture,
      debianPackages.map(({ name }) => `${name}:${architecture}`),
    ).map((path) => {
      const field = (name: string) =>
        execFileSync('dpkg-deb', ['--field', path, name], { encoding: 'utf8' }).trim()
      return { name: field('Package'), version: field('Version'), hash: sha256(readFileSync(path)) }
    }),
  )
  const updated = debianPackages.map(({ name }) => {
    const [amd64, arm64] = files.map((list) => list.find((each) => each.name === name))
    if (amd64 === undefined || arm64 === undefined || amd64.version !== arm64.version)
      throw new Error(`${name} has not the same version for both architectures yet`)
    return { name, version: amd64.version, amd64: amd64.hash, arm64: arm64.hash }
  })
  writeFileSync(lockFile, `${JSON.stringify(updated, undefined, 2)}\n`)
  return updated
}

if (import.meta.main) {
  const { values } = parseArgs({ options: { arch: { type: 'string' }, outdir: { type: 'string' } } })
  const architecture = architectures.find((each) => each === values.arch)
  try {
    if (architecture === undefined || values.outdir === undefined)
      throw new Error(`give --arch (${architectures.join(', ')}) and --outdir`)
    writeBase(architecture, resolve(values.outdir))
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 1
  }
}
