/**
 * Bundles the `tenon` command into `dist/`: tenon.mjs, the thread that decides, the parts that commands load
 * when they run, source maps, and the licenses of what is bundled. Needs nothing beside Node to run.
 */
import { cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'
import { licenseNotices } from './license-notices.ts'

const root = join(import.meta.dirname, '..')
const { values } = parseArgs({ options: { outdir: { type: 'string', default: join(root, 'dist') } } })
const outdir = values.outdir

rmSync(outdir, { recursive: true, force: true })
mkdirSync(outdir, { recursive: true })
const { metafile } = await build({
  absWorkingDir: root,
  entryPoints: {
    tenon: 'packages/cli/src/main.ts',
    'scheduling-thread': 'packages/operator/src/decider/scheduling-thread.ts',
  },
  outdir,
  outExtension: { '.js': '.mjs' },
  chunkNames: 'part-[hash]',
  bundle: true,
  // A command loads what it is made of when it runs, and the thread shares the engine with it.
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node24',
  minifySyntax: true,
  minifyWhitespace: true,
  keepNames: false,
  sourcemap: 'linked',
  sourcesContent: false,
  legalComments: 'none',
  metafile: true,
  // What some dependencies would use if it were installed.
  external: ['bufferutil', 'utf-8-validate'],
  // CommonJS among the dependencies asks for Node's own modules.
  banner: { js: "import{createRequire as r0}from'node:module';const require=r0(import.meta.url);" },
  logLevel: 'warning',
})
cpSync(join(root, 'LICENSE'), join(outdir, 'LICENSE'))
writeFileSync(join(outdir, 'THIRD-PARTY-LICENSES.txt'), licenseNotices(root, Object.keys(metafile.inputs)))
for (const [path, { bytes }] of Object.entries(metafile.outputs).toSorted((a, b) => b[1].bytes - a[1].bytes))
  if (!path.endsWith('.map')) process.stdout.write(`${path} ${Math.round(bytes / 1024)} KiB\n`)
