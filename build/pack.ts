/**
 * Builds the published packages, `tenon` and `@tenon/provider`, and prints their tarballs with sizes. Neither
 * has dependencies. Both have the version of the repository's package.json.
 */
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { isBuiltin } from 'node:module'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { schemas } from '../packages/cli/src/commands/schema/schemas.ts'
import { bundleProgram } from './bundle-program.ts'
import { writeDeclarations } from './declarations.ts'
import { repositoryRoot } from './repository-root.ts'

const { values } = parseArgs({
  options: { outdir: { type: 'string', default: join(repositoryRoot, 'dist/npm') } },
})
const { outdir } = values
const { version, license } = manifestOf('package.json')
const shared = { version, license, type: 'module', engines: { node: '>=24' } }

rmSync(outdir, { recursive: true, force: true })
for (const folder of [await packTenon(), await packProvider()]) {
  setModes(folder)
  const told = execFileSync('npm', ['pack', folder, '--json', '--silent', '--pack-destination', outdir], {
    cwd: outdir,
    encoding: 'utf8',
  })
  // Depending on the release of npm, a list or an object by name.
  for (const { filename, size, unpackedSize } of Object.values(JSON.parse(told) as Record<string, Packed>))
    process.stdout.write(`${join(outdir, filename)} ${kib(size)}, unpacked ${kib(unpackedSize)}\n`)
}

/** Whatever the umask of the checkout is, two checkouts give the same tarball. */
function setModes(folder: string): void {
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true }))
    if (entry.isFile())
      chmodSync(join(entry.parentPath, entry.name), entry.name === 'program.js' ? 0o755 : 0o644)
}

interface Packed {
  readonly filename: string
  readonly size: number
  readonly unpackedSize: number
}

/**
 * Packs the command. Only the small launcher checks the version of Node, as an older one cannot even parse the
 * rest.
 */
async function packTenon(): Promise<string> {
  const folder = join(outdir, 'tenon')
  await bundleProgram(join(folder, 'dist'), false)
  for (const text of ['LICENSE', 'THIRD-PARTY-LICENSES.txt'])
    renameSync(join(folder, 'dist', text), join(folder, text))
  cpSync(join(import.meta.dirname, 'program.js'), join(folder, 'program.js'))
  cpSync(join(repositoryRoot, 'packages/cli/README.md'), join(folder, 'README.md'))
  writeSchemas(join(folder, 'schemas'))
  const { description } = manifestOf('package.json')
  const bin = { tenon: 'program.js', 'kubectl-tenon': 'program.js' }
  writeManifest(folder, { name: 'tenon', description, ...shared, bin })
  return folder
}

/** JSON Schemas for tools that do not run the command. */
function writeSchemas(folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (const [kind, schema] of schemas)
    writeFileSync(join(folder, `${kind}.json`), `${JSON.stringify(schema, undefined, 2)}\n`)
}

/** Packs the contract, and what tests of a provider need. */
async function packProvider(): Promise<string> {
  const folder = join(outdir, 'provider')
  const doors = { '.': 'index', './contract-suite': 'contract-suite/index' }
  const sources = Object.values(doors).map((door) => `provider/src/${door}.ts`)
  const { metafile } = await build({
    absWorkingDir: join(repositoryRoot, 'packages'),
    entryPoints: sources,
    outbase: 'provider/src',
    outdir: join(folder, 'dist'),
    chunkNames: 'part-[hash]',
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    legalComments: 'none',
    metafile: true,
    // Nothing that is left needs them.
    external: [...['api', 'kube', 'runtime'].flatMap(packagesUsedBy), '*/forwarded-connection.ts'],
    logLevel: 'warning',
  })
  const outside = [
    ...Object.values(metafile.outputs).flatMap(({ imports }) =>
      imports.filter((each) => each.external === true).map(({ path }) => path),
    ),
    ...writeDeclarations(sources, join(folder, 'types')),
  ].filter((name) => !isBuiltin(name))
  if (outside.length > 0) throw new Error(`@tenon/provider would depend on ${outside.join(', ')}`)
  cpSync(join(repositoryRoot, 'LICENSE'), join(folder, 'LICENSE'))
  cpSync(join(repositoryRoot, 'packages/provider/README.md'), join(folder, 'README.md'))
  const { name, description, sideEffects } = manifestOf('packages/provider/package.json')
  const exports = Object.fromEntries(
    Object.entries(doors).map(([door, path]) => [
      door,
      { types: `./types/provider/src/${path}.d.ts`, default: `./dist/${path}.js` },
    ]),
  )
  writeManifest(folder, {
    name,
    description,
    ...shared,
    sideEffects,
    exports,
    // The declarations use types of Node.
    peerDependencies: { '@types/node': '>=24' },
    peerDependenciesMeta: { '@types/node': { optional: true } },
  })
  return folder
}

function manifestOf(path: string): Readonly<Record<string, unknown>> {
  return JSON.parse(readFileSync(join(repositoryRoot, path), 'utf8')) as Readonly<Record<string, unknown>>
}

/** External dependencies of a package. */
function packagesUsedBy(name: string): readonly string[] {
  const { dependencies = {} } = manifestOf(`packages/${name}/package.json`)
  return Object.keys(dependencies as object).filter((each) => !each.startsWith('@tenon/'))
}

function writeManifest(folder: string, manifest: object): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
}

function kib(bytes: number): string {
  return `${Math.round(bytes / 1024)} KiB`
}
