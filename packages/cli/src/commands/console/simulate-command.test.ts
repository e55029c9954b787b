import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Simulation, writeSnapshot } from '@tenon/ask'
import { aClaimedNode, aPending, aPool, aRunning, aSnapshot, aType } from '@tenon/ask/test-clusters'
import { Answers } from '@tenon/console'
import { SystemClock } from '@tenon/runtime'
import { runCommand } from '../../testing/command.test-support.ts'
import { consoleFacts } from './facts.ts'

const never = new AbortController().signal

interface Answered {
  readonly kind: string
  readonly simulation: Simulation
  readonly text: string
  readonly command: string
  readonly problems: readonly { readonly message: string }[]
}

/** What the shell makes of a command of the page: its words, and what it reads. */
function read(command: string): { readonly args: readonly string[]; readonly input: string } {
  const script = `tenon() { printf '%s\\0' "$@" END; [ -t 0 ] || cat; }\n${command}`
  const { status, stdout } = spawnSync('sh', ['-c', script], { encoding: 'utf8', input: '' })
  assert.equal(status, 0)
  const [words = '', input = ''] = stdout.split('\0END\0')
  return { args: words.split('\0'), input }
}

test('PGE-6 twice the replicas give the numbers of tenon simulate --scale, and the copied command gives them again', async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "tenon's simulate-"))
  t.after(() => rm(folder, { recursive: true }))
  const file = join(folder, 'cluster.jsonl')
  const [pool, type] = [aPool('blue'), aType('small', 2)]
  const pods = ['a', 'b', 'c'].map((name) => aPending(name, { cpu: '1500m' }, {}, 'web'))
  const nodes = pods.flatMap((pod, at) => [...aClaimedNode(`n${at}`, pool, type), aRunning(pod, `n${at}`)])
  await writeSnapshot(file, aSnapshot([pool, ...nodes], [type]))
  const answers = new Answers(
    consoleFacts({ cwd: folder, env: {}, interrupted: never }, { snapshot: file }),
    new SystemClock(),
  )
  const simulate = async (query: string, body = '') => {
    const { status, text } = await answers.answer(
      { method: 'POST', path: '/api/simulate', query, body },
      never,
    )
    assert.equal(status, 200, text)
    return JSON.parse(text) as Answered
  }

  const twice = await simulate('scale=deployment%2Fdefault%2Fweb%3D6')
  assert.equal(
    twice.simulation.nodes.added.reduce((sum, { count }) => sum + count, 0),
    3,
  )
  const scaled = await runCommand(['simulate', '--scale', 'deployment/default/web=6', '-s', file])
  assert.equal(twice.text, scaled.out)
  const copied = read(twice.command)
  assert.equal((await runCommand(copied.args)).out, twice.text)

  // Several manifests at once, one of which has the line that ends the input, and a scale.
  const manifests = ['red', 'green']
    .map((name) => JSON.stringify({ ...aPool(name), status: undefined }))
    .join('\n---\n# END\n')
  const both = await simulate('scale=deployment%2Fdefault%2Fweb%3D4', `${manifests}\n#\n`)
  assert.equal(both.kind, 'simulated', JSON.stringify(both.problems))
  const { args, input } = read(both.command)
  const path = join(folder, 'manifests.yaml')
  await writeFile(path, input)
  const again = await runCommand(args.map((word) => (word === '/dev/stdin' ? path : word)))
  assert.equal(again.out, both.text)

  for (const [scale, problem] of [
    ['deployment/default/web=1e309', /has no number of replicas/],
    ['deployment/default/web=-1', /has no number of replicas/],
    ['deployment/default/web=9999999', /at most|may have 20000/],
    ['deployment/default/__proto__=2', /has no pods to copy/],
    ['__proto__/web=2', /names no object/],
  ] as const) {
    const { kind, problems } = await simulate(`scale=${encodeURIComponent(scale)}`)
    assert.equal(kind, 'problems')
    assert.match(problems[0]?.message ?? '', problem)
  }
})
