/** The workflows of the forge: what the linter accepts may still name what is not there. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { loadYaml } from '@kubernetes/client-node'
import { testedMinors } from '@tenon/api'
import { SystemClock } from '@tenon/runtime'
import { repositoryRoot } from '../../build/repository-root.ts'
import { ensureBinaries } from '../src/binaries.ts'

interface Step {
  readonly run?: string
}

interface Job {
  readonly uses?: string
  readonly steps?: readonly Step[]
  readonly permissions?: Readonly<Record<string, string>>
  readonly 'timeout-minutes'?: number
}

interface Workflow {
  readonly concurrency?: object
  readonly permissions?: object
  readonly jobs: Readonly<Record<string, Job>>
}

interface IssueForm {
  readonly name?: string
  readonly description?: string
  readonly body: readonly {
    readonly type: string
    readonly id?: string
    readonly attributes: { readonly label?: string; readonly value?: string }
  }[]
}

const folder = join(repositoryRoot, '.github/workflows')
const texts = new Map(
  readdirSync(folder).map((file) => [file, readFileSync(join(folder, file), 'utf8')] as const),
)
const faulty =
  'on: push\njobs:\n  a:\n    runs-on: ubuntu-24.04\n    steps:\n      - run: echo ${{ nothing.of }}\n'

let program = ''

function lint(text: string): { readonly code: number | null; readonly problems: string } {
  // Programs that some hosts have and others do not must not decide.
  const result = spawnSync(program, ['-no-color', '-shellcheck=', '-pyflakes=', '-'], {
    cwd: repositoryRoot,
    encoding: 'utf8',
    input: text,
    timeout: 60_000,
  })
  return { code: result.status, problems: result.stdout + result.stderr }
}

function textOf(path: string): string {
  return readFileSync(join(repositoryRoot, path), 'utf8')
}

function workflows(): (readonly [string, Workflow])[] {
  return [...texts].map(([file, text]) => [file, loadYaml<Workflow>(text)] as const)
}

/** Commands of a workflow, each on one line. */
function commands(workflow: Workflow): string[] {
  return Object.values(workflow.jobs)
    .flatMap(({ steps = [] }) => steps.flatMap(({ run = '' }) => run.replaceAll('\\\n', ' ').split('\n')))
    .map((line) => line.trim())
    .filter((line) => line !== '')
}

function npmScripts(line: string): string[] {
  return [...line.matchAll(/\bnpm (?:run (?:-s )?([\w:-]+)|(test)\b)/g)].map(
    ([, run, own]) => run ?? own ?? '',
  )
}

/** Words that name a file or folder of the repository, also with a wildcard. */
function paths(text: string): string[] {
  return (
    text.match(
      /(?<![\w./-])(?:\.\/)?(?:\.ci|\.github|build|charts|checks|conformance|packages|release)\/[\w.*/-]+/g,
    ) ?? []
  )
}

describe('workflows', () => {
  before(async () => {
    const binaries = await ensureBinaries(['actionlint'], {
      environment: process.env,
      clock: new SystemClock(),
      progress: (line) => process.stderr.write(`${line}\n`),
    })
    program = binaries.actionlint ?? ''
  })

  test('the linter accepts each, and refuses a faulty one', () => {
    assert.deepEqual([...texts.keys()].toSorted(), ['nightly.yml', 'release.yml', 'security.yml', 'test.yml'])
    for (const [file, text] of texts) assert.deepEqual(lint(text), { code: 0, problems: '' }, file)
    const refused = lint(faulty)
    assert.equal(refused.code, 1)
    assert.match(refused.problems, /undefined variable "nothing"/)
  })

  test('each job has only the permissions it names, and a time limit', () => {
    for (const [file, { concurrency, permissions, jobs }] of workflows()) {
      assert.ok(concurrency, file)
      assert.deepEqual(permissions, {}, file)
      for (const [name, job] of Object.entries(jobs)) {
        assert.ok(job.permissions, `${file}: ${name} names no permissions`)
        // A called workflow has limits of its own.
        if (job.uses === undefined) assert.ok(job['timeout-minutes'], `${file}: ${name} has no time limit`)
      }
    }
  })

  test('npm scripts and paths that are named exist', () => {
    const { scripts } = JSON.parse(textOf('package.json')) as { scripts: Record<string, string> }
    const seen = { scripts: 0, paths: 0 }
    for (const [file, workflow] of workflows()) {
      for (const script of commands(workflow).flatMap(npmScripts)) {
        seen.scripts += 1
        assert.ok(Object.hasOwn(scripts, script), `${file}: package.json has no script ${script}`)
      }
      for (const path of paths(texts.get(file) ?? '')) {
        seen.paths += 1
        assert.ok(globSync(path, { cwd: repositoryRoot }).length > 0, `${file}: ${path} does not exist`)
      }
    }
    assert.ok(seen.scripts >= 5 && seen.paths >= 8, JSON.stringify(seen))
  })

  test('test.yml runs every step of .ci/run', () => {
    const run = commands(loadYaml<Workflow>(textOf('.github/workflows/test.yml')))
    const steps = [...textOf('.ci/run').matchAll(/^step \w+ (.+)$/gm)]
    assert.ok(steps.length >= 6)
    for (const [, command = ''] of steps) assert.ok(run.includes(command), `test.yml lacks: ${command}`)
    for (const minor of [testedMinors.oldest, testedMinors.newest])
      assert.ok(run.includes(`npm run conformance -- --kubernetes 1.${minor} kubernetes`), `1.${minor}`)
  })

  test('each action is pinned by its commit, and updates are proposed for all that is pinned', () => {
    for (const [file, text] of texts)
      for (const [line] of text.matchAll(/^.*\buses: (?!\.\/).*$/gm))
        assert.match(line, /uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/, file)
    const { updates } = loadYaml<{ readonly updates: readonly { readonly 'package-ecosystem': string }[] }>(
      textOf('.github/dependabot.yml'),
    )
    const ecosystems = updates.map((update) => update['package-ecosystem'])
    assert.deepEqual(ecosystems.toSorted(), ['docker', 'github-actions', 'gomod', 'npm'])
  })

  test('issue forms have what the forge asks for', () => {
    const kinds = new Set(['markdown', 'input', 'textarea', 'dropdown', 'checkboxes'])
    for (const name of ['bug_report', 'feature_request']) {
      const form = loadYaml<IssueForm>(textOf(`.github/ISSUE_TEMPLATE/${name}.yml`))
      assert.ok(form.name && form.description, name)
      const ids = form.body.flatMap(({ id }) => id ?? [])
      assert.equal(new Set(ids).size, ids.length, name)
      for (const { type, attributes } of form.body) {
        assert.ok(kinds.has(type), `${name}: ${type}`)
        assert.ok(type === 'markdown' ? attributes.value : attributes.label, name)
      }
    }
  })
})
