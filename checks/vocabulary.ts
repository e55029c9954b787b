/**
 * Finds words that docs/glossary.md has retired, in the folders where none is left. Prints one line per word and
 * exits 1 if there is any.
 */
import { readFileSync } from 'node:fs'
import { glob } from 'node:fs/promises'
import { resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
/** Folders without retired words. */
const searched = ['packages/operator/src/**/*.ts', 'docs/metrics.md']

const glossary = readFileSync(resolve(root, 'docs/glossary.md'), 'utf8')
const instead = new Map(
  [...glossary.matchAll(/^\| ([^|]+) \| [^|]+ \| (`[^|]+`) \|$/gm)].flatMap(([, word = '', retired = '']) =>
    retired.split(', ').map((each) => [each.replaceAll('`', ''), word] as const),
  ),
)
const mention = new RegExp(`\\b(?:${[...instead.keys()].join('|')})\\b`, 'g')

let count = 0
for await (const path of glob(searched, { cwd: root })) {
  for (const [index, line] of readFileSync(resolve(root, path), 'utf8').split('\n').entries())
    for (const [word] of line.matchAll(mention)) {
      count++
      console.error(`${path}:${index + 1}: say "${instead.get(word)}" instead of "${word}"`)
    }
}
console.log(`vocabulary: ${count} retired word(s)`)
process.exitCode = count === 0 ? 0 : 1
