/** The page of `tenon console` as files for a browser. */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { build } from 'esbuild'
import { repositoryRoot } from './repository-root.ts'

export interface BuiltPage {
  readonly files: readonly (readonly [name: string, text: Uint8Array])[]
  /** Paths of what they are made of, from the root of the repository. */
  readonly inputs: readonly string[]
}

export async function buildPage(): Promise<BuiltPage> {
  const source = join(repositoryRoot, 'packages/console/src/page')
  const { metafile, outputFiles } = await build({
    absWorkingDir: repositoryRoot,
    entryPoints: { app: join(source, 'main.tsx') },
    outdir: 'page',
    bundle: true,
    format: 'esm',
    platform: 'browser',
    target: ['chrome120', 'firefox128', 'safari17.4'],
    jsx: 'automatic',
    jsxImportSource: 'preact',
    minify: true,
    legalComments: 'none',
    metafile: true,
    write: false,
    logLevel: 'warning',
  })
  return {
    files: [
      ...outputFiles.map(({ contents, path }) => [basename(path), contents] as const),
      ...['index.html', 'icon.svg'].map((name) => [name, readFileSync(join(source, name))] as const),
    ],
    inputs: Object.keys(metafile.inputs),
  }
}
