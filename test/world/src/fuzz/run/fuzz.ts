/** `npm run fuzz`: judges random cases for a while and reports violations. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listFlag, numberFlag, readFlags, UsageError } from '../../simulation/run/arguments.ts'
import { workAll } from '../../simulation/run/crew.ts'
import { Progress } from '../../simulation/run/progress.ts'
import type { Case, Finding } from '../case.ts'
import { type Part, parts } from '../generate/draw.ts'
import { judge } from '../judge.ts'
import type { Io, Task, Verdict } from './tasks.ts'
import { play } from '../play.ts'

/** A case takes a second or two, and many times as long on a busy host; a longer one hangs. */
export const longestCaseMs = 300_000
/** Cases of the part `engine` take milliseconds, so they are judged in batches. */
const decisionsAtOnce = 30
/** Maximum number of failures to shrink; others are only reported. */
const mostShrunk = 12

export const program: string = join(import.meta.dirname, 'worker.ts')

/** For a child process that ended while it worked. */
export const broken = (reason: string): Verdict => ({
  findings: [{ oracle: 'noHang', text: `the case did not come to an end: ${reason}`, atMs: 0 }],
  pods: 0,
  nodes: 0,
})

/** @returns the exit code. */
export async function fuzz(io: Io): Promise<number> {
  const given = readFlags(io.args, ['minutes', 'only', 'seed', 'cases', 'shrink', 'jobs', 'case', 'log'])
  if (given['case'] !== undefined) return await playFile(io, given['case'], given['log'])
  const minutes = numberFlag('minutes', given['minutes'], 2)
  const cases = numberFlag('cases', given['cases'], Number.POSITIVE_INFINITY, 1)
  const seconds = numberFlag('shrink', given['shrink'], 60)
  const first = numberFlag('seed', given['seed'], io.clock.now() % 1_000_000_000, 0)
  const only = given['only'] === undefined ? parts : listFlag('only', given['only'], parts)
  const hunt = new Hunt(io, { only, first, cases, minutes, seconds })
  io.say(`fuzz: seeds from ${first}, parts ${only.join(', ')}, ${minutes} min`)
  await workAll(
    {
      program,
      tasks: hunt.tasks(),
      broken,
      jobs: given['jobs'] === undefined ? undefined : numberFlag('jobs', given['jobs'], 1, 1),
      limit: { ms: Math.max(longestCaseMs, 2 * seconds * 1000), clock: io.clock },
    },
    { ended: (task, verdict) => hunt.ended(task, verdict), progress: () => undefined },
  )
  return await hunt.sum()
}

interface Plan {
  readonly only: readonly Part[]
  readonly first: number
  readonly cases: number
  readonly minutes: number
  readonly seconds: number
}

/** Failures with the same cause. */
interface Kind {
  readonly task: Task
  readonly finding: Finding
  times: number
  smaller: Verdict['smaller']
}

class Hunt {
  readonly #io: Io
  readonly #plan: Plan
  readonly #endMs: number
  readonly #startMs: number
  readonly #progress: Progress
  readonly #kinds = new Map<string, Kind>()
  /** Done before new cases: failures to shrink, and cases that timed out. */
  readonly #queue: Task[] = []
  readonly #counts = new Map<Part, number>()
  #pods = 0
  #nodes = 0

  constructor(io: Io, plan: Plan) {
    this.#io = io
    this.#plan = plan
    this.#startMs = io.clock.monotonic()
    this.#endMs = this.#startMs + plan.minutes * 60_000
    this.#progress = new Progress(io)
  }

  /**
   * Yields cases of all parts in turn until time is up; shrinks failures first. If the last task failed,
   * another one may follow.
   */
  tasks(): Iterable<Task> {
    const { only, first, cases } = this.#plan
    let index = 0
    const next = (): Task | undefined => {
      const queued = this.#queue.shift()
      if (queued !== undefined) return queued
      const nth = Math.floor(index / only.length)
      const part = only[index % only.length]
      if (part === undefined || nth >= cases || this.#io.clock.monotonic() >= this.#endMs) return undefined
      index++
      return part === 'engine' && cases > nth + decisionsAtOnce
        ? { part, seed: first + nth * decisionsAtOnce, count: decisionsAtOnce }
        : { part, seed: first + nth }
    }
    return {
      [Symbol.iterator]: () => ({
        next: () => {
          const task = next()
          return task === undefined ? { done: true, value: undefined } : { done: false, value: task }
        },
      }),
    }
  }

  ended(task: Task, verdict: Verdict): boolean {
    if (task.shrink !== undefined) this.#shrunk(task, verdict)
    else this.#judged(task, verdict)
    this.#progress.tell(() => this.#text())
    return true
  }

  async sum(): Promise<number> {
    this.#io.say(this.#text())
    for (const { task, finding, times, smaller } of this.#kinds.values()) {
      this.#io.say(
        `FAILED: ${finding.oracle}, ${times} case(s), first --only ${task.part} --seed ${task.seed}`,
      )
      this.#io.say(`  ${finding.text.slice(0, 500)}`)
      if (smaller === undefined) continue
      for (const line of await writeFailure(smaller.case, smaller.finding)) this.#io.say(line)
    }
    return this.#kinds.size === 0 ? 0 : 1
  }

  #judged({ count = 1, ...asked }: Task, { findings, pods, nodes, seed = asked.seed }: Verdict): void {
    // On a busy host a case may get too little CPU to end in time.
    if (findings[0]?.oracle === 'noHang' && asked.isRepeated !== true) {
      this.#queue.push({ ...asked, count, isRepeated: true })
      return
    }
    const task = { ...asked, seed }
    this.#counts.set(task.part, (this.#counts.get(task.part) ?? 0) + count)
    this.#pods += pods
    this.#nodes += nodes
    const [finding] = findings
    if (finding === undefined) return
    const key = kindOf(finding)
    const known = this.#kinds.get(key)
    if (known !== undefined) {
      known.times++
      return
    }
    this.#io.say(
      `FOUND by --only ${task.part} --seed ${task.seed}: ${finding.oracle}: ${finding.text.slice(0, 300)}`,
    )
    this.#kinds.set(key, { task, finding, times: 1, smaller: undefined })
    const { seconds } = this.#plan
    // Stories are shrunk by `npm run world`.
    const isCase = finding.oracle !== 'noHang' && task.part !== 'stories'
    if (seconds > 0 && isCase && this.#kinds.size <= mostShrunk)
      this.#queue.push({ ...task, shrink: { oracle: finding.oracle, seconds } })
  }

  #shrunk({ part, seed }: Task, { smaller }: Verdict): void {
    for (const kind of this.#kinds.values())
      if (kind.task.part === part && kind.task.seed === seed) kind.smaller = smaller
  }

  #text(): string {
    const seconds = ((this.#io.clock.monotonic() - this.#startMs) / 1000).toFixed(0)
    const counts = [...this.#counts].map(([part, count]) => `${part} ${count}`).join(', ')
    const failed = [...this.#kinds.values()].reduce((sum, { times }) => sum + times, 0)
    return `${seconds} s: cases ${counts || 'none yet'}; ${this.#pods} pods, ${this.#nodes} nodes; ${failed} failed in ${this.#kinds.size} way(s)`
  }
}

/** Findings that differ only in names and numbers have the same kind. */
function kindOf({ oracle, text }: Finding): string {
  const words = oracle === 'noThrow' ? (/at [^\n]*?\/([\w-]+\.ts:\d+)/.exec(text)?.[1] ?? text) : text
  return `${oracle} ${words.replaceAll(/\S*\d\S*/g, '#').slice(0, 400)}`
}

const levels = ['debug', 'info', 'warn', 'error'] as const

/** Plays the case of a file once, and prints the operator's log from `level` on. */
async function playFile(io: Io, path: string, level: string | undefined): Promise<number> {
  const [least] = listFlag('log', level, levels)
  let given: Case
  try {
    given = JSON.parse(readFileSync(path, 'utf8')) as Case
  } catch (cause) {
    throw new UsageError(`--case ${path}: ${(cause as Error).message}`, { cause })
  }
  const { findings, pods, nodes } = await judge(
    given,
    undefined,
    least && { level: least, log: (line) => io.say(line.trim()) },
  )
  io.say(`${pods} pods, ${nodes} nodes`)
  for (const { oracle, text, atMs } of findings)
    io.say(`FAILED: ${oracle} at ${Math.round(atMs / 1000)} s: ${text}`)
  return findings.length === 0 ? 0 : 1
}

const directory = 'traces'

/** @returns lines to print. */
async function writeFailure(given: Case, finding: Finding): Promise<readonly string[]> {
  mkdirSync(directory, { recursive: true })
  const base = join(directory, `fuzz-${given.part}-${given.seed}-${finding.oracle}`)
  // Keep rejected objects: in the part `names` the rejection may be the failure.
  const isAboutNames = finding.oracle === 'sameUnderOtherNames'
  const accepted = isAboutNames ? given.objects : (await play(given)).accepted
  const again = isManifestEnough(given)
    ? `npm start -- -f ${base}.yaml`
    : `npm run fuzz -- --case ${base}.json`
  writeFileSync(`${base}.json`, `${JSON.stringify({ ...given, objects: accepted }, null, 2)}\n`)
  const head = [
    `${finding.oracle}: ${finding.text}`,
    `Found by npm run fuzz -- --only ${given.part} --seed ${given.seed} --cases 1; plays with: ${again}`,
  ]
  const comments = head.flatMap((line) => line.split('\n')).map((line) => `# ${line}\n`)
  // JSON documents are valid YAML.
  const documents = accepted.map((object) => `---\n${JSON.stringify(object, null, 2)}\n`)
  writeFileSync(`${base}.yaml`, [...comments, ...documents].join(''))
  return [
    `  smallest case: ${accepted.map(({ kind, metadata }) => `${kind} ${metadata.name}`).join(', ')} (${base}.yaml)`,
    `  ${finding.text.split('\n')[0]?.slice(0, 500)}`,
    `  again: ${again}`,
  ]
}

/** Whether the manifest alone reproduces the case. */
function isManifestEnough({ provider, settings, steps, surroundings }: Case): boolean {
  const { gitVersion: _, ...others } = surroundings
  const isPlain = Object.keys(settings).length === 0 && steps.length === 0
  return provider === 'exoscale' && isPlain && Object.keys(others).length === 0
}
