/**
 * How long a scheduling decision blocks the event loop of the calling thread: inline, and with a worker thread.
 * Each row runs in its own process.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { parseArgs } from 'node:util'
import { wellKnownLabels } from '@tenon/api'
import type { NodeInput, SchedulingInput } from '@tenon/engine'
import { InlineDecider, type SchedulingDecider, ThreadDecider } from '@tenon/operator'
import { eventLoopTurns, SeededRandom, silentLogger, SystemClock } from '@tenon/runtime'
import { fakeCatalogue, oneOf, pool } from './scheduling/catalogue.ts'
import { aPod, diverse, pick } from './scheduling/pods.ts'

const usage = `Usage: npm run bench:decider -- [--runs N]

Decides on large inputs, in the calling thread and in a thread of its own, and prints a table.

Columns: wall time of a decision (median), the longest time for which the event loop stood still and
the processor time of that turn (median and worst of the runs), claims, placements, failures.
Run 0 is cold: the thread starts, and the instance types are sent.
`

const mebibyte = 1024 ** 2
const zones = ['test-zone-1', 'test-zone-2', 'test-zone-3']

interface Variant {
  readonly name: string
  readonly make: (random: SeededRandom) => SchedulingInput
}

/** Node's options in the container image. */
const optionsOfTheImage = ['--max-semi-space-size=4']

/** A new batch each time, with the same catalogue objects, as from a provider. */
const nodePool = pool('default', fakeCatalogue())

function anInput(random: SeededRandom, pods: number, nodes: number, bound: number): SchedulingInput {
  const names = Array.from({ length: nodes }, (_, i) => `node-${String(i).padStart(5, '0')}`)
  const inputs = names.map((name) => aNode(name, pick(random, zones)))
  return {
    pods: diverse(random, pods),
    nodes: inputs,
    daemons: [],
    pools: [nodePool],
    topology: {
      pods: diverse(random, bound).map((pod, i) => ({
        ...pod,
        metadata: { ...pod.metadata, name: `b-${i}`, uid: `b-${i}` },
        spec: { ...pod.spec, nodeName: names[i % nodes] as string },
      })),
      nodes: new Map(
        inputs.map(({ name, labels }) => [name, { hostname: name, labels, taints: [], isCandidate: true }]),
      ),
      namespaces: new Map([['default', {}]]),
    },
    policy: {
      preferences: 'Respect',
      minValues: 'Strict',
      wellKnownLabels: new Set(wellKnownLabels),
      maxInstanceTypes: 600,
    },
  }
}

/** A node with as many labels as in a real cloud, and a little free capacity. */
function aNode(name: string, zone: string): NodeInput {
  return {
    name,
    labels: {
      'kubernetes.io/hostname': name,
      'kubernetes.io/os': 'linux',
      'kubernetes.io/arch': 'amd64',
      'topology.kubernetes.io/zone': zone,
      'karpenter.sh/capacity-type': 'on-demand',
      'karpenter.sh/nodepool': 'default',
      'karpenter.sh/registered': 'true',
      'karpenter.sh/initialized': 'true',
      'node.kubernetes.io/instance-type': 'fake-it-9',
      ...Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`example.com/label-${i}`, `value-${i}`])),
    },
    taints: [],
    initialized: true,
    available: { cpu: 1500, memory: 3000 * mebibyte, pods: 90 },
    daemonRequests: { cpu: 100, memory: 100 * mebibyte },
    usedHostPorts: [],
  }
}

/** No pod fits anywhere, so every pod has a reason. */
function hopeless(random: SeededRandom, pods: number): SchedulingInput {
  const input = anInput(random, 0, 0, 0)
  return {
    ...input,
    pods: Array.from({ length: pods }, (_, i) =>
      aPod(i, { cpu: '500' }, { app: String(i % 50) }, { nodeSelector: { app: String(i % 50) } }),
    ),
    pools: Array.from({ length: 10 }, (_, i) =>
      pool(`pool-${i}`, nodePool.instanceTypes, { requirements: [oneOf('app', 'none', String(i))] }),
    ),
  }
}

const variants: readonly Variant[] = [
  { name: '20000 pods', make: (random) => anInput(random, 20_000, 0, 0) },
  { name: '20000 pods, 2000 nodes, 20000 bound', make: (random) => anInput(random, 20_000, 2000, 20_000) },
  { name: '20000 pods, 5000 nodes, 50000 bound', make: (random) => anInput(random, 20_000, 5000, 50_000) },
  { name: '20000 pods without a place', make: (random) => hopeless(random, 20_000) },
]

/** Watches the event loop: each turn schedules the next one, so that a long one shows. */
class LoopWatch {
  #isOn = true
  #last = performance.now()
  #lastCpu = process.threadCpuUsage()
  longestMs = 0
  /** CPU time of the thread in its most expensive turn: its duration on an idle host. */
  longestCpuMs = 0

  start(): void {
    const turn = () => {
      this.#turned()
      if (this.#isOn) setImmediate(turn)
    }
    setImmediate(turn)
  }

  stop(): void {
    this.#isOn = false
    this.#turned()
  }

  #turned(): void {
    const now = performance.now()
    const cpu = process.threadCpuUsage()
    this.longestMs = Math.max(this.longestMs, now - this.#last)
    const cpuMs = (cpu.user + cpu.system - this.#lastCpu.user - this.#lastCpu.system) / 1000
    this.longestCpuMs = Math.max(this.longestCpuMs, cpuMs)
    this.#last = now
    this.#lastCpu = cpu
  }
}

interface Run {
  readonly ms: number
  readonly holdMs: number
  readonly holdCpuMs: number
  readonly outcome: readonly number[]
}

async function measure(variant: Variant, decider: SchedulingDecider, runs: number): Promise<readonly Run[]> {
  const measured: Run[] = []
  for (let run = 0; run < runs; run++) {
    const input = variant.make(new SeededRandom(`${variant.name} ${run}`))
    globalThis.gc?.()
    const watch = new LoopWatch()
    watch.start()
    await eventLoopTurns.next()
    const start = performance.now()
    const result = await decider.decide(input, {
      deadlineMs: 60_000,
      signal: new AbortController().signal,
    })
    const ms = performance.now() - start
    await eventLoopTurns.next()
    watch.stop()
    const { claims, placements, failures } = result
    measured.push({
      ms,
      holdMs: watch.longestMs,
      holdCpuMs: watch.longestCpuMs,
      outcome: [claims.length, placements.length, failures.length],
    })
  }
  await decider.close()
  return measured
}

const deciders: Readonly<Record<string, () => SchedulingDecider>> = {
  inline: () => new InlineDecider(new SystemClock()),
  thread: () => new ThreadDecider({ clock: new SystemClock(), turns: eventLoopTurns, logger: silentLogger }),
}

const fixed = (value: number) => value.toFixed(value < 100 ? 1 : 0)
const cells = (values: readonly string[]) =>
  values.map((value, i) => (i < 2 ? value.padEnd(i === 0 ? 36 : 7) : value.padStart(9))).join(' ')

function row(variant: string, decider: string, runs: readonly Run[]): string {
  const sorted = (of: (run: Run) => number) => runs.map(of).toSorted((a, b) => a - b)
  const median = (values: readonly number[]) => values[(values.length - 1) >> 1] as number
  const hold = sorted((run) => run.holdMs)
  const cpu = sorted((run) => run.holdCpuMs)
  const figures = [median(sorted((run) => run.ms)), median(hold), hold.at(-1) as number]
  const outcome = (runs[0]?.outcome ?? []).map(String)
  return cells([variant, decider, ...[...figures, median(cpu), cpu.at(-1) as number].map(fixed), ...outcome])
}

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '5' },
    help: { type: 'boolean', default: false },
    /** Measures one row in this process. */
    child: { type: 'string' },
  },
})
const runs = Number(values.runs)

if (values.help) console.log(usage)
else if (values.child !== undefined) {
  const [index, name = ''] = values.child.split(':')
  const variant = variants[Number(index)] as Variant
  const decider = deciders[name] as () => SchedulingDecider
  console.log(row(variant.name, name, await measure(variant, decider(), runs)))
} else {
  const titles = ['ms', 'hold ms', 'worst', 'hold cpu', 'worst', 'claims', 'placed', 'failed']
  console.log(cells(['input', 'decider', ...titles]))
  for (const index of variants.keys())
    for (const name of Object.keys(deciders)) {
      const child = fork(import.meta.filename, [`--runs=${runs}`, `--child=${index}:${name}`], {
        execArgv: [...process.execArgv, ...optionsOfTheImage],
      })
      const [code] = (await once(child, 'close')) as [number | null]
      if (code !== 0) process.exitCode = 1
    }
}
