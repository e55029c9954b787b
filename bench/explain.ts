/**
 * `tenon explain pods -A` with many pending pods, while a controller keeps deciding (ask.md 2):
 *
 *   node bench/explain.ts [--nodes N --pods N] [--pending N] [--probes N] [--json]
 *
 * The embedded API server runs in its own process, with nodes, running pods, and pending pods of forty shapes
 * for which no NodePool can launch a node. So does `tenon controller`. `live` asks the controller through its
 * debug port, `file` a snapshot that was saved from it; both are the shipped program, including its start.
 * `claim` is the time from the creation of a pod that needs a node until its NodeClaim exists, without other
 * load and while the controller is asked continuously; `held` is the longest time that the controller's event
 * loop was blocked meanwhile. Times are medians, in milliseconds.
 */
import { type ChildProcess, execFile, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { SystemClock } from '@tenon/runtime'
import { benchArguments } from './arguments.ts'
import { bundledMain, ControllerProcess, freePort } from './control-plane/controller-process.ts'
import type { Answer, Order } from './state/api-process.ts'

const values = benchArguments(
  'explain',
  'Times tenon explain pods -A beside a controller that goes on deciding.',
  {
    nodes: { type: 'string', default: '500', help: 'nodes of the cluster' },
    pods: { type: 'string', default: '10000', help: 'pods that run on them' },
    pending: { type: 'string', default: '5000', help: 'pods that wait' },
    probes: { type: 'string', default: '15', help: 'pods that need a node, one after the other' },
    json: { type: 'boolean', help: 'prints the figures as JSON' },
  },
)
const size = { nodes: Number(values.nodes), pods: Number(values.pods), pending: Number(values.pending) }
const probes = Number(values.probes)
if (![...Object.values(size), probes].every((each) => each > 0)) {
  console.error('explain: --nodes, --pods, --pending and --probes take positive numbers')
  process.exit(2)
}
const withinMs = 300_000
const asked = 5
const mostOutput = 64 * 1024 ** 2

const clock = new SystemClock()
const run = promisify(execFile)
const api = fork(new URL('state/api-process.ts', import.meta.url), {
  execArgv: ['--max-old-space-size=8192'],
})
const folder = await mkdtemp(join(tmpdir(), 'tenon-bench-explain-'))
try {
  print(await measured())
} finally {
  api.kill()
  await rm(folder, { recursive: true, force: true })
}

async function measured(): Promise<Readonly<Record<string, number>>> {
  const filled = await ask(api, { kind: 'fill', ...size })
  if (filled.kind !== 'filled') throw new Error(`the API server answered ${filled.kind}`)
  const port = await freePort()
  const controller = await ControllerProcess.start({
    kubeconfigPath: filled.kubeconfigPath,
    log: join(folder, 'controller.log'),
    clock,
    isProbed: true,
    options: [`--debug-port=${port}`],
  })
  const live = ['--controller', `http://127.0.0.1:${port}`]
  const file = join(folder, 'cluster.jsonl')
  try {
    await controller.stateSynced(withinMs)
    // The first decisions warm up the code.
    await probed(3)
    await controller.longestHoldMs()
    const alone = await probed(probes)
    const heldAlone = await controller.longestHoldMs()
    const answers = await repeated(() => explain(live))
    await tenon('snapshot', 'save', file, ...live)
    const offline = await repeated(() => explain(['--snapshot', file]))
    await controller.longestHoldMs()
    const asking = new AbortController()
    const askers = askedUntil(live, asking.signal)
    const beside = await probed(probes)
    asking.abort()
    const answersMeanwhile = await askers
    return {
      ...size,
      live: median(answers),
      file: median(offline),
      claim: median(alone),
      'claim beside': median(beside),
      'later %': 100 * (median(beside) / median(alone) - 1),
      'answers beside': answersMeanwhile,
      held: heldAlone,
      'held beside': await controller.longestHoldMs(),
    }
  } finally {
    await controller.stop()
  }
}

/** Milliseconds until the answer is printed. */
async function explain(source: readonly string[]): Promise<number> {
  const start = clock.monotonic()
  const text = await tenon('explain', 'pods', '-A', ...source)
  const took = clock.monotonic() - start
  const pods = [...text.matchAll(/^(\d+) pods/gm)].reduce((sum, [, count]) => sum + Number(count), 0)
  if (pods < size.pending)
    throw new Error(`${pods} of ${size.pending} pods are explained:\n${text.slice(0, 2000)}`)
  return took
}

async function tenon(...args: readonly string[]): Promise<string> {
  const { stdout } = await run(process.execPath, [bundledMain(), ...args], { maxBuffer: mostOutput })
  return stdout
}

async function repeated(measure: () => Promise<number>): Promise<readonly number[]> {
  const all: number[] = []
  for (let each = 0; each < asked; each++) all.push(await measure())
  return all
}

/**
 * Asks continuously.
 * @returns how often.
 */
async function askedUntil(source: readonly string[], signal: AbortSignal): Promise<number> {
  let answers = 0
  while (!signal.aborted) {
    await explain(source)
    answers++
  }
  return answers
}

async function probed(pods: number): Promise<readonly number[]> {
  const answer = await ask(api, { kind: 'probe', pods })
  return answer.kind === 'probed' ? answer.waitedMs : []
}

function median(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN
}

async function ask(child: ChildProcess, order: Order): Promise<Answer> {
  const over = new AbortController()
  const { signal } = over
  const answered = Promise.race([once(child, 'message', { signal }), once(child, 'exit', { signal })])
  child.send(order)
  const [answer] = (await answered) as unknown[]
  over.abort()
  if (typeof answer !== 'object' || answer === null)
    throw new Error(`the API server ended (${String(answer)})`)
  return answer as Answer
}

function print(row: Readonly<Record<string, number>>): void {
  if (values.json) process.stdout.write(`${JSON.stringify(row)}\n`)
  else
    for (const [name, value] of Object.entries(row))
      process.stdout.write(`${name.padEnd(16)}${value.toFixed(0).padStart(8)}\n`)
}
