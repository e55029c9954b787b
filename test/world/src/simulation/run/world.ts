/** `npm run world`: runs one seed, reports what happened, and shrinks a failure. */
import { plantedBug, storyOf as storyOfBug } from '../planted/bugs.ts'
import { shrink } from '../shrink.ts'
import { type Report, simulate } from '../simulation.ts'
import {
  aStory,
  cloudNames,
  faultKinds,
  faultLevels,
  parseStory,
  type Story,
  workloadKinds,
} from '../story.ts'
import { bugsFlag, faultsLeftOut, listFlag, numberFlag, readFlags, UsageError } from './arguments.ts'
import type { Io, Say } from './io.ts'
import { describeMoment, Progress, timeOf } from './progress.ts'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'

const flags = [
  'seed',
  'hours',
  'faults',
  'nodes',
  'without-faults',
  'only-faults',
  'without-workloads',
  'with-workloads',
  'provider',
  'bug',
  'trace',
  'replay',
  'shrink',
] as const

/** @returns the exit code. */
export async function playOne(io: Io): Promise<number> {
  const given = readFlags(io.args, flags)
  const recorded = given['replay'] === undefined ? undefined : await readTrace(given['replay'])
  const story = recorded?.story ?? storyOf(given)
  const attempts = numberFlag('shrink', given['shrink'], 40)
  const started = io.clock.monotonic()
  const progress = new Progress(io)
  const report = await play(story, progress)
  const path = given['trace'] ?? usualPath(story, given['replay'])
  await writeTrace(path, report)
  tell(io.say, report, (io.clock.monotonic() - started) / 1000, path)
  if (recorded !== undefined) {
    const isSame = recorded.hash === report.hash
    io.say(
      isSame ? 'The replay is identical.' : `The replay differs: ${report.hash} instead of ${recorded.hash}.`,
    )
    return isSame && report.violation === undefined ? 0 : 1
  }
  if (report.violation === undefined) return 0
  if (attempts > 0) await shorten(io.say, progress, report, attempts, path)
  return 1
}

/** A replay must overwrite neither the trace it is compared with nor that of the seed's longer story. */
function usualPath(story: Story, replayed: string | undefined): string {
  return replayed === undefined ? `traces/world-${story.seed}.json` : withSuffix(replayed, '-replay')
}

function withSuffix(path: string, suffix: string): string {
  return path.replace(/(\.json)?$/, `${suffix}.json`)
}

function storyOf(given: Readonly<Record<string, string | undefined>>): Story {
  const seed = numberFlag('seed', given['seed'], 1)
  const [bug, ...more] = bugsFlag(given['bug'] ?? '')
  if (more.length > 0) throw new UsageError('--bug: a run has one; npm run world:planted takes several')
  const usual = bug === undefined ? aStory(seed) : storyOfBug(bug, seed)
  const withoutFaults = faultsLeftOut(given)
  const withoutWorkloads = given['without-workloads']
  const withWorkloads = given['with-workloads']
  const provider = listFlag('provider', given['provider'], cloudNames)[0] ?? usual.provider
  return {
    ...usual,
    ...(provider !== undefined && { provider }),
    hours: numberFlag('hours', given['hours'], usual.hours),
    nodes: numberFlag('nodes', given['nodes'], usual.nodes, 1),
    faults: listFlag('faults', given['faults'], faultLevels)[0] ?? usual.faults,
    ...(withoutFaults !== undefined && { withoutFaults }),
    ...(withoutWorkloads !== undefined && {
      withoutWorkloads: listFlag('without-workloads', withoutWorkloads, workloadKinds),
    }),
    ...(withWorkloads !== undefined && {
      withWorkloads: listFlag('with-workloads', withWorkloads, workloadKinds),
    }),
  }
}

/** @param prefix of the progress output. */
async function play(story: Story, progress: Progress, prefix = '  '): Promise<Report> {
  const bug = story.mutation === undefined ? undefined : plantedBug(story.mutation)
  return await simulate(story, bug, (now) => {
    progress.tell(() => `${prefix}${describeMoment(now)}`)
  })
}

async function shorten(
  say: Say,
  progress: Progress,
  report: Report,
  attempts: number,
  path: string,
): Promise<void> {
  const { violation, story } = report
  if (violation === undefined) return
  say(`Looking for a shorter story (at most ${attempts} runs) …`)
  let last = report
  let runs = 0
  const smallest = await shrink(
    { story, violation },
    async (candidate) => {
      const prefix = `  run ${++runs} of at most ${attempts}, ${describe(candidate)}: `
      const tried = await play(candidate, progress, prefix)
      if (tried.violation?.invariant === violation.invariant) last = tried
      return tried.violation
    },
    attempts,
  )
  const shortPath = withSuffix(path, '-short')
  await writeTrace(shortPath, last)
  say(`Shortest story: ${describe(smallest.story)}`)
  say(`  at ${timeOf(smallest.violation.atMs)}: ${smallest.violation.text}`)
  say(`  again: npm run world -- --replay ${shortPath}`)
}

function tell(say: Say, report: Report, seconds: number, path: string): void {
  const { story, violation, faults } = report
  const injected = [...faults.values()].reduce((sum, count) => sum + count, 0)
  say(describe(story))
  say(
    `  ${report.events} events, ${report.checks} checks, ${injected} faults; at most ${report.mostPods} pods on ${report.mostNodes} nodes, ${report.meanNodes} on average; ` +
      `${report.launches} launches by ${report.processes} controller(s); calm after ${report.calmMinutes} min`,
  )
  if (faults.size > 0) say(`  faults: ${[...faults].map(([kind, count]) => `${kind} ${count}`).join(', ')}`)
  say(`  hash ${report.hash}, ${seconds.toFixed(1)} s, trace in ${path}`)
  if (violation === undefined) {
    say('  every invariant held')
    return
  }
  say(`FAILED: seed ${story.seed}, invariant ${violation.invariant}, at ${timeOf(violation.atMs)}`)
  say(`  ${violation.text}`)
}

function describe(story: Story): string {
  const { seed, hours, nodes, faults, withoutFaults, withoutWorkloads, withWorkloads = [] } = story
  const { provider, mutation } = story
  const parts = [`seed ${seed}, ${hours} h, ${nodes} nodes, faults ${faults}`]
  if (provider !== undefined) parts.push(`at ${provider}`)
  if (withoutFaults.length > 0)
    parts.push(`only ${faultKinds.filter((kind) => !withoutFaults.includes(kind)).join(' ') || 'no'} faults`)
  if (withoutWorkloads.length > 0)
    parts.push(
      `only ${workloadKinds.filter((kind) => !withoutWorkloads.includes(kind)).join(' ') || 'no'} workload`,
    )
  if (withWorkloads.length > 0 && mutation === undefined) parts.push(`with ${withWorkloads.join(' ')}`)
  if (mutation !== undefined) parts.push(`with the planted bug ${mutation}`)
  return parts.join('; ')
}

/** What `--replay` needs, and what helps a person. */
interface Trace {
  readonly story: Story
  readonly hash: string
}

/** Writes a trace as JSON; `events` and `logs` are its last lines. */
async function writeTrace(path: string, report: Report): Promise<void> {
  const { story, hash, violation, events, tail, logs, clusterEvents } = report
  const trace = { story, hash, violation, eventCount: events, events: tail, clusterEvents, logs }
  await mkdir(dirname(path), { recursive: true })
  await writeFile(path, `${JSON.stringify(trace, null, 1)}\n`)
}

/** @throws Error if the file cannot be read or is not a trace. */
async function readTrace(path: string): Promise<Trace> {
  const text = await readFile(path, 'utf8')
  let fields: { readonly story?: unknown; readonly hash?: unknown }
  try {
    fields = JSON.parse(text) as typeof fields
  } catch (cause) {
    throw new Error(`${path} is not a trace: it is not JSON`, { cause })
  }
  return { story: parseStory(fields.story), hash: String(fields.hash) }
}
