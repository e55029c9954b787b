/**
 * The cost of following a large cluster: the embedded API server runs in its own process, with nodes, their
 * claims and pods. So does `tenon controller`, which is measured.
 *
 *   node bench/state.ts [--nodes N --pods N] [--changes PER_SECOND] [--seconds S] [--json] [--cpu-prof DIR]
 *
 * `synced` is the time from the start of the controller's process until it is ready and
 * `karpenter_cluster_state_synced` is 1, `CPU s` the CPU time of that. `rest %` and `busy %` are CPU time, in
 * percent of a core, while nothing changes and while pods change (statuses, creations, bindings, deletions),
 * and `writes` the controller's writes meanwhile. `held` is the longest time that the event loop was blocked:
 * from when the program is loaded until it has synced, and during further changes of pods, as measuring takes
 * time itself. On a busy host the changes may take longer than intended: `busy %` is the CPU time of all of
 * them and their effects, divided by the intended time, and includes the work at rest. `state %` is the same
 * for a standby replica, which only lists, watches and keeps the state. `--json` also has how long pods wait for their
 * NodeClaim while others change (`launchP50Ms`, of ten pods the slowest `launchMaxMs`, with batching), and time and lines of a scrape.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SystemClock } from '@tenon/runtime'
import { benchArguments } from './arguments.ts'
import { ControllerProcess } from './control-plane/controller-process.ts'
import type { Answer, Order } from './state/api-process.ts'

interface Row {
  readonly nodes: number
  readonly pods: number
  readonly podBytes: number
  readonly syncedSeconds: number
  readonly syncCpuSeconds: number
  readonly rssMiB: number
  readonly peakRssMiB: number
  readonly syncHeldMs: number
  readonly restPercent: number
  readonly restWrites: number
  /** A second; changes of watches are none. */
  readonly restRequests: number
  readonly busyPercent: number
  readonly busyHeldMs: number
  readonly busyWrites: number
  readonly launchP50Ms: number
  readonly launchMaxMs: number
  readonly scrapeSeconds: number
  readonly scrapeLines: number
  readonly statePercent: number
}

const values = benchArguments(
  'state',
  'What it takes to follow a large cluster: the embedded API server, and a controller in a process of its own.',
  {
    nodes: { type: 'string', help: 'nodes of the cluster; with --pods' },
    pods: { type: 'string', help: 'pods of the cluster; with --nodes' },
    changes: { type: 'string', default: '100', help: 'changes a second while busy' },
    seconds: { type: 'string', default: '30', help: 'how long the cluster is at rest, and busy' },
    json: { type: 'boolean', help: 'one JSON document for each row' },
    heap: { type: 'string', help: 'heap limit of the controller in MiB' },
    'cpu-prof': { type: 'string', help: 'folder for CPU profiles of the controller' },
  },
)
const sizes =
  values.nodes === undefined && values.pods === undefined
    ? [
        { nodes: 500, pods: 10_000 },
        { nodes: 2000, pods: 40_000 },
        { nodes: 5000, pods: 100_000 },
      ]
    : [{ nodes: Number(values.nodes ?? 5000), pods: Number(values.pods ?? 100_000) }]
const perSecond = Number(values.changes)
const seconds = Number(values.seconds)
if (![perSecond, seconds, ...sizes.flatMap(({ nodes, pods }) => [nodes, pods])].every((each) => each > 0)) {
  console.error('state: --nodes, --pods, --changes and --seconds take positive numbers')
  process.exit(1)
}
const syncWithinMs = 300_000
/** The writes of the start, such as conditions, are over if there was none for this long. */
const quietMs = 5000
const settleWithinMs = 600_000
/** Pods of which the time until their NodeClaim is measured. */
const launches = 10
/** Nodes whose pods changed become consolidatable after this time, which is a write too. */
const followUpMs = 30_000
const lease = { namespace: 'kube-system', name: 'bench' }

const clock = new SystemClock()
if (!values.json)
  line(
    'nodes',
    'pods',
    'synced s',
    'CPU s',
    'RSS MiB',
    'peak',
    'held ms',
    'rest %',
    'writes',
    'busy %',
    'held ms',
    'writes',
    'state %',
  )
for (const size of sizes) print(await measured(size))

async function measured(size: { readonly nodes: number; readonly pods: number }): Promise<Row> {
  const api = fork(new URL('state/api-process.ts', import.meta.url), {
    execArgv: ['--max-old-space-size=8192'],
  })
  const folder = await mkdtemp(join(tmpdir(), 'tenon-bench-state-log-'))
  let isDone = false
  try {
    const filled = await ask(api, { kind: 'fill', ...size })
    if (filled.kind !== 'filled') throw new Error(`the API server answered ${filled.kind}`)
    let row: Omit<Row, 'statePercent'>
    const nodeOptions = [
      ...(values['cpu-prof'] === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${values['cpu-prof']}`]),
      ...(values.heap === undefined ? [] : [`--max-old-space-size=${values.heap}`]),
    ]
    const start = clock.monotonic()
    const controller = await ControllerProcess.start({
      kubeconfigPath: filled.kubeconfigPath,
      log: join(folder, 'controller.log'),
      clock,
      isProbed: true,
      nodeOptions,
    })
    try {
      await controller.serving(syncWithinMs)
      // Loading the program blocks the loop, so it is excluded.
      await controller.longestHoldMs()
      await controller.stateSynced(syncWithinMs)
      const syncedSeconds = (clock.monotonic() - start) / 1000
      const { cpuSeconds: syncCpuSeconds } = controller.figures()
      const syncHeldMs = await controller.longestHoldMs()
      await settle(api)
      const { rssMiB } = controller.figures()
      controller.watchLoop(false)
      const rest = await during(api, controller, () => clock.sleep(seconds * 1000))
      const changing = async () => {
        await ask(api, { kind: 'churn', perSecond, seconds })
        await clock.sleep(followUpMs)
        await settle(api)
      }
      const busy = await during(api, controller, changing)
      controller.watchLoop(true)
      await controller.longestHoldMs()
      await changing()
      const busyHeldMs = await controller.longestHoldMs()
      const churned = await ask(api, { kind: 'churn', perSecond, seconds, probes: launches })
      if (churned.kind !== 'churned') throw new Error(`the API server answered ${churned.kind}`)
      const waitedMs = churned.waitedMs.toSorted((a, b) => a - b)
      const scrape = await controller.scrape()
      const restPerSecond = rest.cpuSeconds / rest.seconds
      const busyPerSecond = restPerSecond + (busy.cpuSeconds - restPerSecond * busy.seconds) / seconds
      row = {
        ...size,
        podBytes: filled.podBytes,
        syncedSeconds,
        syncCpuSeconds,
        rssMiB,
        peakRssMiB: controller.figures().peakRssMiB,
        syncHeldMs,
        restPercent: 100 * restPerSecond,
        restWrites: rest.writes,
        restRequests: rest.requests / rest.seconds,
        busyPercent: 100 * busyPerSecond,
        busyHeldMs,
        busyWrites: busy.writes,
        launchP50Ms: waitedMs[waitedMs.length >> 1] ?? Number.NaN,
        launchMaxMs: waitedMs.at(-1) ?? Number.NaN,
        scrapeSeconds: scrape.seconds,
        scrapeLines: scrape.lines,
      }
    } finally {
      await controller.stop()
    }
    const statePercent = await follower(api, filled.kubeconfigPath, join(folder, 'follower.log'))
    isDone = true
    return { ...row, statePercent }
  } finally {
    api.kill()
    // The log says what went wrong.
    if (isDone) await rm(folder, { recursive: true, force: true })
  }
}

/** CPU time, in percent of a core, of a replica that does not lead, while pods change. */
async function follower(api: ChildProcess, kubeconfigPath: string, log: string): Promise<number> {
  await ask(api, { kind: 'hold-lease', ...lease })
  const replica = await ControllerProcess.start({ kubeconfigPath, log, clock, lease })
  try {
    await replica.ready(syncWithinMs)
    await settle(api)
    const taken = await during(api, replica, () => ask(api, { kind: 'churn', perSecond, seconds }))
    return (100 * taken.cpuSeconds) / taken.seconds
  } finally {
    await replica.stop()
  }
}

async function settle(api: ChildProcess): Promise<void> {
  const giveUpMs = clock.monotonic() + settleWithinMs
  for (let before = -1; clock.monotonic() < giveUpMs; ) {
    const { writes: now } = await countsOf(api)
    if (now === before) return
    before = now
    await clock.sleep(quietMs)
  }
}

/** The controller's resources during a phase. */
interface Taken {
  readonly cpuSeconds: number
  readonly seconds: number
  readonly writes: number
  readonly requests: number
}

async function during(
  api: ChildProcess,
  controller: ControllerProcess,
  work: () => Promise<unknown>,
): Promise<Taken> {
  const before = { ...controller.figures(), ...(await countsOf(api)), at: clock.monotonic() }
  await work()
  const after = await countsOf(api)
  return {
    cpuSeconds: controller.figures().cpuSeconds - before.cpuSeconds,
    seconds: (clock.monotonic() - before.at) / 1000,
    writes: after.writes - before.writes,
    requests: after.requests - before.requests,
  }
}

async function countsOf(api: ChildProcess): Promise<{ readonly writes: number; readonly requests: number }> {
  const answer = await ask(api, { kind: 'count' })
  if (answer.kind !== 'counted') throw new Error(`the API server answered ${answer.kind}`)
  return answer
}

async function ask(api: ChildProcess, order: Order): Promise<Answer> {
  const over = new AbortController()
  const { signal } = over
  const answered = Promise.race([once(api, 'message', { signal }), once(api, 'exit', { signal })])
  api.send(order)
  const [answer] = (await answered) as unknown[]
  over.abort()
  if (typeof answer !== 'object' || answer === null)
    throw new Error(`the API server ended (${String(answer)})`)
  return answer as Answer
}

function print(row: Row): void {
  if (values.json) {
    process.stdout.write(`${JSON.stringify(row)}\n`)
    return
  }
  const { syncedSeconds, syncCpuSeconds, rssMiB, peakRssMiB, syncHeldMs } = row
  const listing = [
    syncedSeconds.toFixed(1),
    syncCpuSeconds.toFixed(1),
    rssMiB.toFixed(0),
    peakRssMiB.toFixed(0),
  ]
  const rest = [row.restPercent.toFixed(1), String(row.restWrites)]
  const busy = [row.busyPercent.toFixed(1), row.busyHeldMs.toFixed(0), String(row.busyWrites)]
  const state = row.statePercent.toFixed(1)
  line(String(row.nodes), String(row.pods), ...listing, syncHeldMs.toFixed(0), ...rest, ...busy, state)
}

function line(...cells: readonly string[]): void {
  process.stdout.write(`${cells.map((cell) => cell.padStart(9)).join('')}\n`)
}
