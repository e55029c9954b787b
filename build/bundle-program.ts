/** Builds the `tenon` command as files that only need Node to run. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { buildPage, firstLoadBytes } from './page.ts'
import { repositoryRoot } from './repository-root.ts'

export interface BundledProgram {
  /** With their sizes in bytes, largest first. */
  readonly scripts: readonly (readonly [path: string, bytes: number])[]
  /** Of the page, compressed. */
  readonly firstLoadBytes: number
}

/**
 * Empties `outdir` and writes tenon.mjs, its threads (decisions, lease, answers of the page), the chunks that
 * commands load on demand, the page, and licenses.
 * @param hasMaps whether to write source maps.
 * @throws Error if the page has become too large.
 */
export async function bundleProgram(outdir: string, hasMaps: boolean): Promise<BundledProgram> {
  rmSync(outdir, { recursive: true, force: true })
  mkdirSync(outdir, { recursive: true })
  const { metafile } = await build({
    absWorkingDir: repositoryRoot,
    entryPoints: {
      tenon: 'packages/cli/src/main.ts',
      'scheduling-thread': 'packages/operator/src/decide/scheduling-thread.ts',
      'lease-thread': 'packages/cli/src/commands/controller/lease-thread.ts',
      'answer-thread': 'packages/cli/src/commands/console/answer-thread.ts',
    },
    outdir,
    outExtension: { '.js': '.mjs' },
    chunkNames: 'part-[hash]',
    bundle: true,
    // Commands load their code on demand, and threads share the engine with it.
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    keepNames: false,
    sourcemap: hasMaps ? 'linked' : false,
    sourcesContent: false,
    legalComments: 'none',
    metafile: true,
    // Optional dependencies of dependencies.
    external: ['bufferutil', 'utf-8-validate'],
    // CommonJS dependencies `require` Node's own modules.
    banner: { js: "import{createRequire as r0}from'node:module';const require=r0(import.meta.url);" },
    logLevel: 'warning',
  })
  const page = await buildPage()
  mkdirSync(join(outdir, 'page'))
  for (const [name, text] of page.files) writeFileSync(join(outdir, 'page', name), text)
  cpSync(join(repositoryRoot, 'LICENSE'), join(outdir, 'LICENSE'))
  writeFileSync(
    join(outdir, 'THIRD-PARTY-LICENSES.txt'),
    licenseNotices(repositoryRoot, [...Object.keys(metafile.inputs), ...page.inputs]),
  )
  return {
    scripts: Object.entries(metafile.outputs)
      .filter(([path]) => !path.endsWith('.map'))
      .map(([path, { bytes }]) => [path, bytes] as const)
      .toSorted(([, a], [, b]) => b - a),
    firstLoadBytes: firstLoadBytes(page),
  }
}

interface BundledPackage {
  readonly name: string
  readonly version: string
  readonly license: string
  readonly texts: readonly string[]
}

/**
 * The notices of all packages that `inputs` belong to; paths are relative to `root`.
 * @throws Error naming a package without a license.
 */
function licenseNotices(root: string, inputs: readonly string[]): string {
  const folders = new Set(
    inputs.flatMap((path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? []),
  )
  const packages = [...folders].toSorted().map((folder) => readPackage(join(root, folder)))
  const parts = packages.map(
    ({ name, version, license, texts }) => `${name} ${version}\nLicense: ${license}\n\n${texts.join('\n')}`,
  )
  return `This program contains the following packages.\n\n${parts.join(`\n${'-'.repeat(78)}\n\n`)}`
}

function readPackage(folder: string): BundledPackage {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    readonly name: string
    readonly version: string
    readonly license?: string
  }
  const { name, version, license } = manifest
  if (license === undefined) throw new Error(`${name} ${version} tells no license`)
  const files = readdirSync(folder).filter((file) => /^(?:licen[cs]e|notice|copying)\b/i.test(file))
  const texts = files.toSorted().map((file) => `${readFileSync(join(folder, file), 'utf8').trim()}\n`)
  return { name, version, license, texts }
}
