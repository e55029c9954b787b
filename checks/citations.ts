/**
 * Finds citations of the behaviour sheets that do not resolve: `scheduling.md 9.2` needs that section in
 * docs/behaviour/scheduling.md, `SCH-12` needs scenario 12 there. Source files that documents name must exist, and so
 * must files that they link to.
 * Prints one line per citation and exits 1 if there is any.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, relative, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const sheetFolder = resolve(root, 'docs/behaviour')
const map = 'ARCHITECTURE.md'
const searched = [
  map,
  'CONTRIBUTING.md',
  'README.md',
  'packages/',
  'simulators/',
  'test/',
  'conformance/',
  'bench/',
  'build/',
  'checks/',
  'release/',
  'docs/',
]
const text = /\.(?:ts|js|mjs|md|yaml|json)$/
/** Third-party data. */
const exempt = /\/testdata\//

/** The sheet with the scenarios of each prefix, from the list of sheets. */
const sheetOfPrefix: ReadonlyMap<string, string> = new Map(
  [
    ...readFileSync(resolve(sheetFolder, 'README.md'), 'utf8').matchAll(
      /^\| \[([a-z-]+\.md)\].* ([A-Z]{3})(?:-\S+)? \|$/gm,
    ),
  ].map(([, file = '', prefix = '']) => [prefix, file]),
)

/** What can be cited of a sheet. */
interface Sheet {
  /** Numbers of its sections, such as `9.2` or `A5`. */
  readonly sections: ReadonlySet<string>
  readonly scenarios: ReadonlySet<string>
}

/** Parses a sheet: numbered headings, and the numbered list below the heading that names the scenarios. */
function sheet(content: string): Sheet {
  const sections = new Set<string>()
  const scenarios = new Set<string>()
  let isScenarios = false
  for (const line of content.split('\n')) {
    const heading = /^#+ (?:([A-Z]?\d+(?:\.\d+)*)\.? )?(.*)/.exec(line)
    if (heading !== null) {
      if (heading[1] !== undefined) sections.add(heading[1])
      isScenarios = /^scenarios\b/i.test(heading[2] ?? '')
    }
    const scenario = isScenarios ? /^(\d+)\. /.exec(line)?.[1] : undefined
    if (scenario !== undefined) scenarios.add(scenario)
  }
  return { sections, scenarios }
}

const section = '[A-Z]?\\d+(?:\\.\\d+)*'
const separator = '(?:, (?:and )?| and | to )'
const fileCitation = new RegExp(
  `(?<![\\w/.-])([a-z]+(?:-[a-z]+)*\\.md)(?: |\\n \\* )(${section}(?:${separator}${section})*)(?![\\w-])`,
  'g',
)
const scenarioCitation = new RegExp(`\\b(${[...sheetOfPrefix.keys()].join('|')})-(\\d+)\\b`, 'g')
/** A sheet that a comment names in parentheses or in a list, whatever follows. */
const mention = /[(,;] ?([a-z]+(?:-[a-z]+)*\.md)\b/g

interface Finding {
  readonly line: number
  readonly citation: string
  readonly reason: string
}

/**
 * Citations in `content` that do not resolve.
 * @param sheets by file name. In code, a document of that name is a sheet.
 */
function unresolved(
  content: string,
  sheets: ReadonlyMap<string, Sheet>,
  { isCode }: { readonly isCode: boolean },
): readonly Finding[] {
  const found: Finding[] = []
  const add = (index: number, citation: string, reason: string): void => {
    found.push({ line: lineOf(content, index), citation, reason })
  }
  for (const { 0: citation, 1: file = '', 2: numbers = '', index } of content.matchAll(fileCitation)) {
    const cited = sheets.get(file)
    if (cited === undefined) add(index, citation, `docs/behaviour has no ${file}`)
    else
      for (const number of numbers.split(new RegExp(separator)))
        if (!cited.sections.has(number)) add(index, citation, `${file} has no section ${number}`)
  }
  for (const { 0: citation, 1: prefix = '', 2: number = '', index } of content.matchAll(scenarioCitation)) {
    const file = sheetOfPrefix.get(prefix) ?? ''
    if (sheets.get(file)?.scenarios.has(number) !== true)
      add(index, citation, `${file} has no scenario ${number}`)
  }
  if (isCode)
    for (const { 1: file = '', index } of content.matchAll(mention))
      if (!sheets.has(file)) add(index, file, `docs/behaviour has no ${file}`)
  return found
}

/** Source files that a document names, by the end of their path, and that are not there. */
function lostSources(content: string, files: readonly string[]): readonly Finding[] {
  return [...content.matchAll(/`((?:[\w@.-]+\/)*[\w.-]+\.tsx?)`/g)].flatMap(
    ({ 1: path = '', index }): readonly Finding[] =>
      files.some((file) => `/${file}`.endsWith(`/${path}`)) ? [] : [lost(content, path, index)],
  )
}

/** Missing files and folders that the map of the code names; paths are relative to one of its roots. */
function lostFiles(content: string): readonly Finding[] {
  const roots = ['', 'packages', 'packages/operator/src']
  return [...content.matchAll(/`([a-z][a-z-]*(?:\/[a-z-]+)*(?:\.ts|\/))`/g)].flatMap(
    ({ 1: path = '', index }): readonly Finding[] =>
      roots.some((folder) => existsSync(resolve(root, folder, path))) ? [] : [lost(content, path, index)],
  )
}

/** Links of a document to files of the repository, with the path from its root. */
function links(
  path: string,
  content: string,
): readonly { readonly target: string; readonly index: number }[] {
  return [...content.matchAll(/\]\((?![a-z]+:|#)([^)#\s[\]*]+)[)#]/g)].map(({ 1: link = '', index }) => ({
    target: relative(root, resolve(root, dirname(path), link)),
    index,
  }))
}

function brokenLinks(path: string, content: string): readonly Finding[] {
  return links(path, content).flatMap(({ target, index }): readonly Finding[] =>
    existsSync(resolve(root, target)) ? [] : [lost(content, target, index)],
  )
}

function lost(content: string, citation: string, index: number): Finding {
  return { line: lineOf(content, index), citation, reason: 'there is no such file' }
}

function lineOf(content: string, index: number): number {
  return content.slice(0, index).split('\n').length
}

if (import.meta.main) {
  const sheets = new Map(
    readdirSync(sheetFolder)
      .filter((name) => name.endsWith('.md'))
      .map((name) => [name, sheet(readFileSync(resolve(sheetFolder, name), 'utf8'))] as const),
  )
  const listed = execFileSync('git', ['ls-files', '-co', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 26,
  })
  const files = listed.split('\n').filter((path) => existsSync(resolve(root, path)))
  const paths = files.filter(
    (path) => searched.some((part) => path.startsWith(part)) && text.test(path) && !exempt.test(path),
  )
  let count = 0
  for (const path of paths) {
    const content = readFileSync(resolve(root, path), 'utf8')
    const findings = [
      ...unresolved(content, sheets, { isCode: !path.endsWith('.md') }),
      ...(path === map ? lostFiles(content) : path.endsWith('.md') ? lostSources(content, files) : []),
      ...(path.endsWith('.md') ? brokenLinks(path, content) : []),
    ]
    for (const { line, citation, reason } of findings)
      console.error(`${path}:${line} cites "${citation}", but ${reason}`)
    count += findings.length
  }
  console.error(`citations of ${paths.length} files checked, ${count} do not resolve`)
  process.exitCode = count === 0 ? 0 : 1
}
