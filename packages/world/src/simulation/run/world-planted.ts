/** `npm run world:planted`: plants one bug after the other and demands that the world finds each. */
import { plantedBug, plantedBugs } from '../planted/bugs.ts'
import { aStory, type Story } from '../story.ts'
import { numberFlag, readFlags } from './arguments.ts'
import { playAll, type Verdict } from './crew.ts'
import type { Io } from './io.ts'

/** @returns the exit code. */
export async function findPlanted(io: Io): Promise<number> {
  const given = readFlags(io.args, ['bug', 'seeds', 'hours', 'nodes', 'jobs'])
  const bugs = given['bug'] === undefined ? plantedBugs : given['bug'].split(',').map(plantedBug)
  const limit = numberFlag('seeds', given['seeds'], 200, 1)
  const hours = numberFlag('hours', given['hours'], 1)
  const nodes = numberFlag('nodes', given['nodes'], 8, 1)
  const jobs = given['jobs'] === undefined ? undefined : numberFlag('jobs', given['jobs'], 1, 1)
  const missed: string[] = []
  for (const { name, mistake } of bugs) {
    let found: { readonly seed: number; readonly verdict: Verdict } | undefined
    let played = 0
    await playAll(
      stories(name, limit, hours, nodes),
      ({ seed }, verdict) => {
        played++
        if (verdict.violation !== undefined && (found === undefined || seed < found.seed))
          found = { seed, verdict }
        return found === undefined
      },
      jobs,
    )
    if (found === undefined) missed.push(name)
    const violation = found?.verdict.violation
    io.say(
      `${name} (${mistake}): ${found === undefined ? `NOT FOUND in ${played} seeds` : `seed ${found.seed}`}`,
    )
    if (violation !== undefined) io.say(`  ${violation.invariant}: ${violation.text}`)
  }
  if (missed.length === 0) return 0
  io.say(`not found: ${missed.join(', ')}`)
  return 1
}

function* stories(mutation: string, limit: number, hours: number, nodes: number): Generator<Story> {
  for (let seed = 1; seed <= limit; seed++) yield aStory(seed, { hours, nodes, mutation })
}
