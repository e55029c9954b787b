/** Builds the page of `tenon console` for browsers. */
import { readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build } from 'esbuild'
import { repositoryRoot } from './repository-root.ts'

export interface BuiltPage {
  readonly files: readonly (readonly [name: string, text: Uint8Array])[]
  /** Paths of the sources, relative to the repository's root. */
  readonly inputs: readonly string[]
}

/** Limit of what a browser loads first, in compressed bytes (console.md 3). */
const mostBytes = 200_000

/**
 * Compressed size of what a browser loads first.
 * @throws Error if it exceeds the limit.
 */
export function firstLoadBytes({ files }: Pick<BuiltPage, 'files'>): number {
  const bytes = files.reduce((sum, [, text]) => sum + gzipSync(text, { level: 9 }).length, 0)
  if (bytes < mostBytes) return bytes
  throw new Error(`the first load of the page is ${bytes} bytes compressed: it may be ${mostBytes}`)
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
    target: ['chrome123', 'firefox128', 'safari17.5'],
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
