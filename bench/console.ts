/**
 * `tenon view` and `tenon console` on a large cluster, beside the targets that they have (console.md 2, 3):
 *
 *   node bench/console.ts [--nodes N --pods N] [--changes PER_SECOND] [--seconds S] [--only PART] [--json]
 *
 * The embedded API server runs in a process of its own, with nodes, running pods, and changes of them; `tenon
 * controller` in another, whose pages under `/debug` are asked first. The viewer and the console are the program as it
 * is shipped, and ask the controller as well.
 *
 * `fill` is the time until all is shown, `held` the longest time that the event loop was held, `key` the time from a key
 * to what it changes on the screen of a pseudo-terminal of 200x50, `frame` what it takes to make and write such a screen
 * after a change, without a terminal. `picture` is the time until the first picture is whole, `late` the time from one
 * change on the stream to the next, which tells how evenly they come. `answer` is the time of a question that takes a
 * copy of the cluster, and `held` beside it how long the page's server was held meanwhile. `usable` is the time from
 * the address until a click on the page does what it should, in Chromium; frames there are those of a view that
 * is looked at while things change, and `held` is its longest task, 0 where none takes 50 ms. Times are milliseconds,
 * cores shares of one. The frames of the map while it is dragged are counted by `npm run browser -- map`.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SystemClock } from '@tenon/runtime'
import { benchArguments } from './arguments.ts'
import { ask } from './console/asked.ts'
import type { Figure, Stand } from './console/figure.ts'
import { parts } from './console/parts.ts'
import { ControllerProcess, freePort } from './control-plane/controller-process.ts'
import type { Answer, Order } from './state/api-process.ts'

const values = benchArguments('console', '`tenon view` and `tenon console` on a large cluster.', {
  nodes: { type: 'string', default: '5000', help: 'nodes of the cluster' },
  pods: { type: 'string', default: '100000', help: 'pods of the cluster' },
  changes: { type: 'string', default: '100', help: 'changes of pods a second' },
  seconds: { type: 'string', default: '20', help: 'how long each face is looked at meanwhile' },
  only: { type: 'string', help: `one of: ${[...parts.keys()].join(', ')}` },
  json: { type: 'boolean', help: 'one JSON document' },
})
const [nodes, pods, changes, seconds] = [values.nodes, values.pods, values.changes, values.seconds].map(
  Number,
) as [number, number, number, number]
if (![nodes, pods, changes, seconds].every((each) => each > 0)) {
  console.error('console: --nodes, --pods, --changes and --seconds take positive numbers')
  process.exit(2)
}
const { only } = values
if (only !== undefined && !parts.has(only)) {
  console.error(`console: --only takes one of: ${[...parts.keys()].join(', ')}`)
  process.exit(2)
}

const syncWithinMs = 300_000
const clock = new SystemClock()
const startMs = clock.monotonic()
const api = fork(new URL('state/api-process.ts', import.meta.url), {
  execArgv: ['--max-old-space-size=8192'],
})
const folder = await mkdtemp(join(tmpdir(), 'tenon-bench-console-'))
try {
  say(`fill an API server with ${nodes} nodes and ${pods} pods`)
  const filled = await ask<Answer>(api, { kind: 'fill', nodes, pods } satisfies Order)
  if (filled.kind !== 'filled') throw new Error(`the API server answered ${filled.kind}`)
  await measured(api, filled.kubeconfigPath)
} finally {
  api.kill()
  await rm(folder, { recursive: true, force: true })
}

async function measured(server: ChildProcess, kubeconfig: string): Promise<void> {
  const port = await freePort()
  say('start a controller')
  const controller = await ControllerProcess.start({
    kubeconfigPath: kubeconfig,
    log: join(folder, 'controller.log'),
    clock,
    isProbed: true,
    options: [`--debug-port=${port}`],
  })
  const stand: Stand = {
    clock,
    kubeconfig,
    controller,
    controllerUrl: `http://127.0.0.1:${port}`,
    size: { nodes, pods },
    seconds,
    // A little longer than somebody looks.
    churn: async () => {
      await ask<Answer>(server, { kind: 'churn', perSecond: changes, seconds: seconds + 2 } satisfies Order)
    },
  }
  const all: Figure[] = []
  try {
    await controller.stateSynced(syncWithinMs)
    for (const [name, { about, measure }] of parts) {
      if (only !== undefined && only !== name) continue
      say(about)
      const figures = await measure(stand)
      all.push(...figures)
      if (!values.json) for (const figure of figures) print(figure)
    }
  } finally {
    await controller.stop()
  }
  if (values.json)
    process.stdout.write(
      `${JSON.stringify(Object.fromEntries([['nodes', nodes], ['pods', pods], ['changes', changes], ...all.map(({ name, value }) => [name, value])]))}\n`,
    )
}

/** Progress, beside the figures. */
function say(text: string): void {
  process.stderr.write(`${((clock.monotonic() - startMs) / 1000).toFixed(0).padStart(4)} s: ${text}\n`)
}

function print({ name, target, value }: Figure): void {
  const wanted = target === undefined ? '' : `  < ${target}${value < target ? '' : '  MISSED'}`
  process.stdout.write(`${name.padEnd(44)}${value.toFixed(1).padStart(10)}${wanted}\n`)
}
