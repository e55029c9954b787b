/** `npm run world:planted`: plants one bug after the other and requires that the world finds each. */
import { plantedBugs, storyOf } from '../planted/bugs.ts'
import type { PlantedBug } from '../planted/planted-bug.ts'
import { cloudNames, cloudOfStory, type Story } from '../story.ts'
import { bugsFlag, listFlag, numberFlag, readFlags } from './arguments.ts'
import { playAll, type Verdict } from './crew.ts'
import type { Io } from './io.ts'
import { Progress } from './progress.ts'

/** The search for one bug. */
interface Hunt {
  readonly bug: PlantedBug
  played: number
  cpuMs: number
  /** The lowest seed that has found it so far. */
  seed: number | undefined
}

/** @returns the exit code: 1 if a bug was not found. */
export async function findPlanted(io: Io): Promise<number> {
  const given = readFlags(io.args, ['bug', 'provider', 'seeds', 'hours', 'nodes', 'jobs'])
  const [provider] = listFlag('provider', given['provider'], cloudNames)
  const named = given['bug'] === undefined ? plantedBugs : bugsFlag(given['bug'])
  const bugs = named.filter(({ profile }) => provider === undefined || cloudOfStory(profile) === provider)
  const limit = numberFlag('seeds', given['seeds'], 200, 1)
  const jobs = given['jobs'] === undefined ? undefined : numberFlag('jobs', given['jobs'], 1, 1)
  const change = {
    ...(given['hours'] !== undefined && { hours: numberFlag('hours', given['hours'], 1) }),
    ...(given['nodes'] !== undefined && { nodes: numberFlag('nodes', given['nodes'], 8, 1) }),
  }
  const hunts = new Map(
    bugs.map((bug): [string, Hunt] => [bug.name, { bug, played: 0, cpuMs: 0, seed: undefined }]),
  )
  const progress = new Progress(io)
  await playAll(
    storiesFor([...hunts.values()], limit, change),
    {
      ended: ({ seed, mutation = '' }, verdict) => {
        const hunt = hunts.get(mutation)
        if (hunt === undefined) return true
        hunt.played++
        hunt.cpuMs += verdict.cpuMs
        if (hunt.seed === undefined && isFind(verdict)) {
          hunt.seed = seed
          for (const line of ended(hunt, verdict)) io.say(line)
        }
        return true
      },
      progress: ({ seed }) => {
        progress.tell(() => {
          const left = [...hunts.values()].filter((each) => each.seed === undefined)
          return `seed ${seed}: looking for ${left.map((each) => each.bug.name).join(', ') || 'nothing more'}`
        })
      },
    },
    jobs,
  )
  return summed([...hunts.values()], io)
}

/** Tries one seed after the other for all bugs that were not found yet. */
function* storiesFor(hunts: readonly Hunt[], limit: number, change: Partial<Story>): Generator<Story> {
  for (let seed = 1; seed <= limit; seed++) {
    for (const { bug, seed: found } of hunts)
      if (found === undefined) yield { ...storyOf(bug, seed), ...change }
  }
}

/** An aborted run says nothing about invariants. */
const isFind = ({ violation }: Verdict): boolean =>
  violation !== undefined && violation.invariant !== 'noUnexpectedError'

function ended({ bug, played, cpuMs, seed }: Hunt, { violation }: Verdict): readonly string[] {
  const minutes = ((violation?.atMs ?? 0) / 60_000).toFixed(1)
  return [
    `${bug.name} (${bug.mistake})`,
    `  seed ${seed}, ${played} played, ${inSeconds(cpuMs)}; ${violation?.invariant} after ${minutes} virtual minutes`,
    `  ${violation?.text}`,
  ]
}

function summed(hunts: readonly Hunt[], io: Io): number {
  const found = hunts.filter(({ seed }) => seed !== undefined)
  const missed = hunts.filter(({ seed }) => seed === undefined)
  const cpuMs = hunts.reduce((sum, hunt) => sum + hunt.cpuMs, 0)
  io.say(
    `${found.length} of ${hunts.length} planted bugs found, by seeds up to ${Math.max(0, ...found.map(({ seed }) => seed ?? 0))}; ` +
      `${inSeconds(cpuMs)} of processor time`,
  )
  for (const { bug, played, cpuMs: spentMs } of missed)
    io.say(`NOT FOUND: ${bug.name} (${bug.mistake}): ${played} seeds, ${inSeconds(spentMs)}`)
  return missed.length === 0 ? 0 : 1
}

const inSeconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
