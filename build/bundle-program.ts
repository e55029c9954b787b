/** The `tenon` command as files that need nothing beside Node to run. */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { build } from 'esbuild'
import { licenseNotices } from './license-notices.ts'
import { buildPage, firstLoadBytes } from './page.ts'
import { repositoryRoot } from './repository-root.ts'

export interface BundledProgram {
  /** With their sizes in bytes, the largest first. */
  readonly scripts: readonly (readonly [path: string, bytes: number])[]
  /** Of the page, compressed. */
  readonly firstLoadBytes: number
}

/**
 * Fills `outdir`, which is emptied first: tenon.mjs, the threads that decide, hold the lease and answer the page, the parts that commands load when they
 * run, the files of the page, and the licenses of what is bundled.
 * @param hasMaps whether source maps are written as well.
 * @throws Error when a browser would have to load too much.
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
    // A command loads what it is made of when it runs, and the threads share the engine with it.
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
    // What some dependencies would use if it were installed.
    external: ['bufferutil', 'utf-8-validate'],
    // CommonJS among the dependencies asks for Node's own modules.
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
