/** The built page: next to the installed program, or built on the fly from source. */
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { gzipSync } from 'node:zlib'

/** A file with its headers. */
export interface PageFile {
  readonly contentType: string
  readonly text: Uint8Array
  readonly gzipped: Uint8Array
}

/** Files by name, such as `app.js`. */
export type PageFiles = ReadonlyMap<string, PageFile>

const contentTypes: ReadonlyMap<string, string> = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.html', 'text/html; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
])

/** @throws Error if there is neither a built page nor its source. */
export async function pageFiles(): Promise<PageFiles> {
  const folder = join(import.meta.dirname, 'page')
  const names = await readdir(folder).catch(() => undefined)
  if (names !== undefined) {
    const texts = await Promise.all(
      names.map(async (name) => [name, await readFile(join(folder, name))] as const),
    )
    return filesOf(texts)
  }
  // Computed, so that bundlers do not follow it: installed programs have no such file.
  const builder = pathToFileURL(join(import.meta.dirname, '../../../../build/page.ts')).href
  const { buildPage } = (await import(builder)) as {
    buildPage: () => Promise<{ readonly files: readonly (readonly [string, Uint8Array])[] }>
  }
  return filesOf((await buildPage()).files)
}

function filesOf(texts: readonly (readonly [name: string, text: Uint8Array])[]): PageFiles {
  return new Map(
    texts.map(([name, text]) => [
      name,
      {
        contentType: contentTypes.get(extname(name)) ?? 'application/octet-stream',
        text,
        gzipped: gzipSync(text, { level: 9 }),
      },
    ]),
  )
}
