/**
 * Finds words that docs/glossary.md has retired, in names, comments, texts and documents. Prints one line per
 * word and exits 1 if there is any.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')

/** Searched file types. */
const searched = /\.(?:ts|mjs|md|ya?ml|json|sh|tpl)$/
/** Not searched: this check, behaviour sheets, third-party definitions, and the glossary itself. */
const skipped =
  /^checks\/vocabulary\.ts$|^docs\/behaviour\/|^docs\/glossary\.md$|^package-lock\.json$|\/(?:wire|zero)-fields\.json$/

/** Names of other projects, names that users have stored, and names that a recorded run depends on. */
const names =
  /machineID|apimachinery|[mM]achine(?:Deployment|Set|Template|Pool|HealthCheck)s?|machine-resources|machineDeleted|machinesBoundOnce|v1alpha5 Machine|fork\('[a-z-]+'\)/g

const glossary = readFileSync(resolve(root, 'docs/glossary.md'), 'utf8')
const instead = new Map(
  [...glossary.matchAll(/^\| ([^|]+) \| [^|]+ \| (`[^|]+`) \|$/gm)].flatMap(([, word = '', retired = '']) =>
    retired.split(', ').map((each) => [each.replaceAll('`', ''), word] as const),
  ),
)
/** Paths and lines where a Machine is meant, which is not retired; the row of the glossary lists them. */
const meansMachine = new RegExp(
  [...(/^\| Machine \|.*$/m.exec(glossary)?.[0] ?? '').matchAll(/`([^`]+)`/g)]
    .map(([, mark = '']) => `(?<![a-z])${mark.replaceAll('.', String.raw`\.`)}`)
    .join('|'),
  'i',
)
const mention = mentionOf([...instead.keys()])

/** Finds each word alone and inside of a name: `machine`, `aMachine`, `machineOf`, but not `machinery`. */
function mentionOf(words: readonly string[]): RegExp {
  const parts = words.map((word) => {
    const [first = ''] = word
    const rest = word.slice(1)
    return `(?<![A-Za-z])[${first}${first.toUpperCase()}]${rest}(?![a-z])|(?<=[a-z])${first.toUpperCase()}${rest}(?![a-z])`
  })
  return new RegExp(parts.join('|'), 'g')
}

function lowerFirst(word: string): string {
  return `${word.slice(0, 1).toLowerCase()}${word.slice(1)}`
}

interface Place {
  readonly path: string
  readonly text: string
  readonly line: string
}

/** With a capital it means a Machine in any file that mentions them. */
function isMachine(word: string, { path, text, line }: Place): boolean {
  if (!/^machines?$/i.test(word)) return false
  return (
    meansMachine.test(path) || meansMachine.test(line) || (word.startsWith('M') && meansMachine.test(text))
  )
}

let count = 0
const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: root,
  encoding: 'utf8',
  maxBuffer: 2 ** 26,
}).split('\0')
for (const path of new Set(files)) {
  if (!searched.test(path) || skipped.test(path)) continue
  const text = contentOf(path)
  if (text.search(mention) < 0) continue
  for (const [index, line] of text.split('\n').entries())
    for (const [word] of line.replaceAll(names, '').matchAll(mention)) {
      if (isMachine(word, { path, text, line })) continue
      count++
      console.error(`${path}:${index + 1}: say "${instead.get(lowerFirst(word)) ?? ''}" instead of "${word}"`)
    }
}

/** Empty if the file was deleted. */
function contentOf(path: string): string {
  try {
    return readFileSync(resolve(root, path), 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}

console.log(`vocabulary: ${count} retired word(s)`)
process.exitCode = count === 0 ? 0 : 1
