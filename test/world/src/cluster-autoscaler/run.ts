/**
 * `npm run world:autoscaler`: plays stories of the Cluster Autoscaler mode, and requires that planted bugs are
 * found.
 */
import { createCredentials, type Credentials } from '@tenon/devcluster'
import { listFlag, numberFlag, readFlags, seedsFlag, UsageError } from '../simulation/run/arguments.ts'
import type { Io } from '../simulation/run/io.ts'
import { plantedHubMistakes } from './cluster-api/hub-planted.ts'
import { playHubStory } from './cluster-api/hub-story.ts'
import { type PlantedMistake, plantedMistakes } from './planted.ts'
import { playStory } from './story.ts'

/** Certificates are valid from a fixed time; every story begins then. */
const startMs = Date.UTC(2026, 0, 1)

/** @returns the exit code: 1 if an invariant was violated or a bug was not found. */
export async function playAutoscaler(io: Io): Promise<number> {
  const given = readFlags(io.args, ['seeds', 'minutes', 'bug', 'provider'])
  const minutes = numberFlag('minutes', given['minutes'], 60, 1)
  const seeds = seedsFlag(given['seeds'] ?? (given['bug'] === undefined ? '1..20' : '1..200'))
  const provider = given['provider'] ?? 'exoscale'
  if (provider !== 'exoscale' && provider !== 'cluster-api')
    throw new UsageError('--provider must be exoscale or cluster-api')
  const credentials = await createCredentials(startMs)
  if (provider === 'cluster-api') return await playHub(io, { seeds, minutes, bug: given['bug'] }, credentials)
  if (given['bug'] === undefined) return await playMany(io, seeds, minutes, credentials)
  const names = plantedMistakes.map(({ name }) => name)
  const asked = given['bug'] === 'all' ? names : listFlag('bug', given['bug'], names)
  if (asked.length === 0) throw new UsageError(`--bug must be all, or one of ${names.join(', ')}`)
  let missed = 0
  for (const mistake of plantedMistakes.filter(({ name }) => asked.includes(name)))
    if (!(await isFound(io, mistake, seeds, minutes, credentials))) missed++
  io.say(`${asked.length - missed} of ${asked.length} planted mistakes found`)
  return missed === 0 ? 0 : 1
}

interface Asked {
  readonly seeds: readonly number[]
  readonly minutes: number
  readonly bug: string | undefined
}

/** The same for Cluster API. */
async function playHub(io: Io, { seeds, minutes, bug }: Asked, credentials: Credentials): Promise<number> {
  if (bug === undefined) {
    let failed = 0
    for (const seed of seeds) {
      const outcome = await playHubStory({ seed, minutes, hasFaults: true }, credentials)
      const { violation, failedCalls, processes, nodesAtMost } = outcome
      if (violation !== undefined) failed++
      io.say(
        violation === undefined
          ? `seed ${seed}: well; ${nodesAtMost} nodes at most, ${failedCalls} failed calls of the hub, ${processes} processes`
          : `seed ${seed}: FAILED ${violation.invariant} after ${(violation.atMs / 60_000).toFixed(1)} min: ${violation.text}`,
      )
    }
    io.say(`${failed} of ${seeds.length} stories failed`)
    return failed === 0 ? 0 : 1
  }
  const asked = plantedHubMistakes.filter(({ name }) => bug === 'all' || bug === name)
  if (asked.length === 0)
    throw new UsageError(
      `--bug must be all, or one of ${plantedHubMistakes.map(({ name }) => name).join(', ')}`,
    )
  let missed = 0
  for (const mistake of asked) {
    let found: string | undefined
    for (const seed of seeds) {
      const hasFaults = mistake.needsFaults === true
      const { violation } = await playHubStory({ seed, minutes, hasFaults, mistake }, credentials)
      found = violation && `seed ${seed}; ${violation.invariant}: ${violation.text}`
      if (found !== undefined) break
    }
    if (found === undefined) missed++
    io.say(`${mistake.name} (${mistake.mistake}): ${found ?? `NOT FOUND: ${seeds.length} seeds`}`)
  }
  io.say(`${asked.length - missed} of ${asked.length} planted mistakes found`)
  return missed === 0 ? 0 : 1
}

async function playMany(
  io: Io,
  seeds: readonly number[],
  minutes: number,
  credentials: Credentials,
): Promise<number> {
  let failed = 0
  for (const seed of seeds) {
    const outcome = await playStory({ seed, minutes, hasFaults: true }, { credentials })
    const { violation, failedCalls, failedRequests, processes, nodesAtMost } = outcome
    if (violation !== undefined) failed++
    io.say(
      violation === undefined
        ? `seed ${seed}: well; ${nodesAtMost} nodes at most, ${failedCalls} failed calls, ${failedRequests} faults of the API server, ${processes} processes`
        : `seed ${seed}: FAILED ${violation.invariant} after ${(violation.atMs / 60_000).toFixed(1)} min: ${violation.text}`,
    )
  }
  io.say(`${failed} of ${seeds.length} stories failed`)
  return failed === 0 ? 0 : 1
}

async function isFound(
  io: Io,
  mistake: PlantedMistake,
  seeds: readonly number[],
  minutes: number,
  credentials: Credentials,
): Promise<boolean> {
  for (const seed of seeds) {
    const { violation } = await playStory(
      { seed, minutes, hasFaults: mistake.needsFaults === true, mistake },
      { credentials },
    )
    if (violation === undefined) continue
    io.say(`${mistake.name} (${mistake.mistake})`)
    io.say(
      `  seed ${seed}; ${violation.invariant} after ${(violation.atMs / 60_000).toFixed(1)} virtual minutes`,
    )
    io.say(`  ${violation.text}`)
    return true
  }
  io.say(`NOT FOUND: ${mistake.name} (${mistake.mistake}): ${seeds.length} seeds`)
  return false
}
