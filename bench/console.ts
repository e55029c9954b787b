/**
 * `tenon view` and `tenon console` on a large cluster, compared with their targets (console.md 2, 3):
 *
 *   node bench/console.ts [--nodes N --pods N] [--changes PER_SECOND] [--seconds S] [--only PART] [--json]
 *
 * The embedded API server runs in its own process, with nodes, running pods, and changes of them. So does
 * `tenon controller`, whose pages under `/debug` are requested first. Viewer and console are the shipped
 * program, and connect to the controller too.
 *
 * `fill` is the time until everything is shown, `held` the longest time that the event loop was blocked, `key`
 * the time from a key to its effect on the screen of a 200x50 pseudo-terminal, `frame` the time to build and
 * write such a screen after a change, without a terminal. `picture` is the time until the first picture is
 * complete, `late` the time between two changes on the stream, which shows how regular they are. `answer` is
 * the time of a question that needs a snapshot, and `held` beside it how long the page's server was blocked
 * meanwhile. `usable` is the time from opening the address until a click takes effect, in Chromium; its frames
 * are those of a visible view while pods change, and its `held` is the longest task, 0 if none takes 50 ms.
 * Times are in milliseconds, cores fractions of one. `npm run browser -- map` counts the frames of the map
 * while it is dragged.
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
    // A little longer than the measurement.
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

/** Prints progress on stderr. */
function say(text: string): void {
  process.stderr.write(`${((clock.monotonic() - startMs) / 1000).toFixed(0).padStart(4)} s: ${text}\n`)
}

function print({ name, target, value }: Figure): void {
  const wanted = target === undefined ? '' : `  < ${target}${value < target ? '' : '  MISSED'}`
  process.stdout.write(`${name.padEnd(44)}${value.toFixed(1).padStart(10)}${wanted}\n`)
}
