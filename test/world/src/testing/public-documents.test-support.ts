/** Public documents of other providers, read from beside the repository where they are. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

/** Where the documents are, if they are there. */
export const documentsFolder: string = resolve(import.meta.dirname, '../../../../../shared/seeds')

const documents = existsSync(documentsFolder)
  ? readdirSync(documentsFolder).map((name) => readFileSync(join(documentsFolder, name), 'utf8'))
  : []

/** The document with such a line; empty when it is not there. */
export function documentAbout(title: RegExp): string {
  return documents.find((text) => title.test(text)) ?? ''
}

/** Blocks of YAML between lines of prose. */
export function manifestsIn(text: string): readonly string[] {
  const blocks: string[][] = []
  let isInside = false
  for (const line of text.split('\n')) {
    if (line.startsWith('apiVersion: ')) blocks.push([])
    isInside = line.startsWith('apiVersion: ') || (isInside && /^(\s|#|$|(kind|metadata|spec):)/.test(line))
    if (isInside) blocks.at(-1)?.push(line)
  }
  return blocks.map((lines) => `${lines.join('\n').trimEnd()}\n`)
}
