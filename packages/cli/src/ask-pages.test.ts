/**
 * The pages in docs/ask, played on the cluster of examples/ask: every block of commands is run, in the order of the
 * pages, or says why it is not; what stands below `$ tenon …` is what the command prints, with `…` for what differs
 * from run to run.
 */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { copyFile, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { test } from 'node:test'
import { parseAllDocuments } from 'yaml'
import { addTenon, type Block, blocksOf, hasKubectl, runCommands } from './testing/pages.test-support.ts'
import {
  eventually,
  kubectlOut,
  startCluster,
  temporaryDirectory,
} from './testing/tenon-process.test-support.ts'

const root = resolve(import.meta.dirname, '../../..')
const folder = join(root, 'docs/ask')

/** Pages whose files others use come first, those that change the cluster last; the others in between. */
const first = ['snapshot.md', 'test.md', 'record.md']
const last = ['pause.md', 'observe-only.md', 'rollout.md']
const pages: readonly string[] = [
  ...first,
  ...readdirSync(folder).filter((name) => !first.includes(name) && !last.includes(name)),
  ...last,
]

const blocks: readonly Block[] = pages.flatMap((page) => blocksOf(`docs/ask/${page}`))

test('EXP-29 what the pages of docs/ask show is run, compared by a test that is there, or says why not', () => {
  assert.ok(blocks.length > 30)
  for (const { place, language, marker, text } of blocks) {
    const where = `${place}: ${text}`
    const [page = ''] = place.split(':')
    const [, by] = /^compared with .* by (packages\/\S+\.test\.ts)$/.exec(marker) ?? []
    if (by !== undefined) {
      assert.ok(readFileSync(join(root, by), 'utf8').includes(page), `${by} does not read ${page}`)
    } else if (marker !== '') assert.match(marker, /^not run: .{8,}$/, where)
    else assert.ok(['console', 'sh', 'yaml'].includes(language), `nobody compares ${where}`)
    if (language === 'console') assert.match(text, /^\$ tenon /, where)
  }
})

/** What is printed, as a pattern. */
function pattern(shown: string): RegExp {
  const escaped = shown
    .trimEnd()
    .split('…')
    .map((part) => part.replaceAll(/[$()*+.?[\\\]^{|}]/g, '\\$&'))
  return new RegExp(`^${escaped.join('[^]*?')}\\s*$`)
}

test('EXP-24 EXP-29 the commands of the pages in docs/ask do on a cluster what they show', {
  skip: hasKubectl ? false : 'kubectl is not on the PATH: no command of the pages is run',
  // Some sixty commands, each a process of its own.
  timeout: 600_000,
}, async (t) => {
  const cwd = await temporaryDirectory(t)
  await addTenon(cwd)
  const example = join(root, 'examples/ask/cluster.yaml')
  await copyFile(example, join(cwd, 'cluster.yaml'))
  await writeNodePool(example, join(cwd, 'nodepool.yaml'))
  await startCluster(t, cwd, 'up', '-f', 'cluster.yaml', '--boot-delay', '500ms')
  await eventually(
    async () => {
      const ready = await kubectlOut(cwd, [
        'get',
        'deployment',
        'web',
        '-n',
        'shop',
        '-o',
        'jsonpath={.status.readyReplicas}',
      ])
      return ready === '12' || undefined
    },
    () => 'the pods of Deployment web are Ready',
  )
  for (const { place, language, marker, text } of blocks) {
    if (marker !== '') continue
    if (language === 'yaml' && text.includes('kind: TestCase'))
      await writeFile(join(cwd, 'example.tenon-test.yaml'), text)
    if (language === 'sh') {
      const { code, err } = await runCommands(cwd, text)
      assert.equal(code, 0, `${place}\n${text}\n${err}`)
    }
    if (language !== 'console') continue
    for (const part of text.split(/^\$ /m).slice(1)) {
      const [command = '', ...lines] = part.split('\n')
      const { out, err } = await runCommands(cwd, command)
      assert.match(out, pattern(lines.join('\n')), `${place}: ${command}\n${err}`)
    }
  }
})

/** The NodePool of the cluster, with an edit that nodes drift from. */
async function writeNodePool(from: string, to: string): Promise<void> {
  const documents = parseAllDocuments(await readFile(from, 'utf8'))
  const wanted = documents.filter((each) => /NodePool|NodeClass/.test(String(each.get('kind'))))
  for (const each of wanted)
    if (each.get('kind') === 'NodePool') each.setIn(['spec', 'template', 'metadata', 'labels', 'team'], 'web')
  await writeFile(to, wanted.map(String).join('---\n'))
}
