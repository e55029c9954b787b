/** Pages of docs/: the index leads to each of them, and no block of commands is left without a word on who runs it. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { test } from 'node:test'
import { repositoryRoot } from './testing/image.test-support.ts'

const index = 'docs/README.md'
/** Their test runs or compares every block (ask-pages.test.ts). */
const compared = 'docs/ask/'

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8')
const pages: readonly string[] = readdirSync(join(repositoryRoot, 'docs'), { recursive: true })
  .map((name) => join('docs', String(name)))
  .filter((path) => path.endsWith('.md'))

/** Files that a page links, from the root of the repository. */
function linkedBy(path: string): readonly string[] {
  return Array.from(read(path).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g), ([, target = '']) =>
    normalize(join(dirname(path), target)),
  )
}

test('ADO-16 the index of docs/ links every page, or the first page of its folder, which does', () => {
  const near = linkedBy(index)
  const found = new Set([index, ...near, ...near.filter((path) => pages.includes(path)).flatMap(linkedBy)])
  assert.deepEqual(
    pages.filter((path) => !found.has(path)),
    [],
  )
})

test('ADO-16 each block of commands in docs/ is run by a test, or says why it is not', () => {
  for (const path of ['README.md', ...pages.filter((page) => !page.startsWith(compared))]) {
    const blocks = read(path).matchAll(/(?:^ *<!-- (.*) -->\n)?^ *```(?:sh|bash|console)\n([^]*?)^ *```$/gm)
    for (const [, marker = '', commands = ''] of blocks) {
      assert.match(
        marker,
        /^(run(: [\w ]+)?|run in the background|not run: .{8,})$/,
        `${path} has no comment above\n${commands}`,
      )
      for (const [file] of marker.matchAll(/\b[\w./-]+\.test\.ts\b/g))
        assert.ok(existsSync(join(repositoryRoot, file)), `${path} names ${file}, which does not exist`)
    }
  }
})
