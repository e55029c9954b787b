/** `npm run world:many`: runs many seeds on all cores and reports those that fail. */
import { ownValue } from '@tenon/api'
import { aStory, cloudNames, faultLevels, type Story, workloadKinds } from '../story.ts'
import { faultsLeftOut, listFlag, numberFlag, readFlags, seedsFlag, UsageError } from './arguments.ts'
import { playAll } from './crew.ts'
import type { Io } from './io.ts'
import { describeMoment, Progress } from './progress.ts'

/** @returns the exit code. */
export async function playMany(io: Io): Promise<number> {
  const given = readFlags(io.args, [
    'seeds',
    'hours',
    'nodes',
    'faults',
    'with-workloads',
    'without-faults',
    'only-faults',
    'provider',
    'jobs',
  ])
  const seeds = seedsFlag(given['seeds'] ?? '1..30')
  const faults = faultLevels.find((level) => level === (given['faults'] ?? 'high'))
  if (faults === undefined) throw new UsageError(`--faults must be one of ${faultLevels.join(', ')}`)
  const hours = numberFlag('hours', given['hours'], 2)
  const nodes = numberFlag('nodes', given['nodes'], 15, 1)
  const [provider] = listFlag('provider', given['provider'], cloudNames)
  const withWorkloads = listFlag('with-workloads', given['with-workloads'], workloadKinds)
  const withoutFaults = faultsLeftOut(given)
  const change = {
    ...(withoutFaults !== undefined && { withoutFaults }),
    ...(provider !== undefined && { provider }),
    ...(withWorkloads.length > 0 && { withWorkloads }),
  }
  const started = io.clock.monotonic()
  const failing: { readonly seed: number; readonly invariant: string }[] = []
  let done = 0
  const progress = new Progress(io)
  const count = (): string => {
    const seconds = (io.clock.monotonic() - started) / 1000
    return `${done} of ${seeds.length} seeds, ${failing.length} failed, ${seconds.toFixed(0)} s`
  }
  await playAll(
    seeds.map((seed): Story => aStory(seed, { hours, nodes, faults, ...change })),
    {
      ended: ({ seed }, { violation }) => {
        done++
        if (violation !== undefined) {
          failing.push({ seed, invariant: violation.invariant })
          io.say(`seed ${seed} FAILED: ${violation.invariant}: ${violation.text}`)
        }
        progress.tell(count)
        return true
      },
      progress: ({ seed }, moment) => {
        progress.tell(() => `${count()}; seed ${seed} ${describeMoment(moment)}`)
      },
    },
    given['jobs'] === undefined ? undefined : numberFlag('jobs', given['jobs'], 1, 1),
  )
  io.say(count())
  if (failing.length === 0) return 0
  const sorted = failing.toSorted((a, b) => a.seed - b.seed)
  io.say(`failing seeds: ${sorted.map(({ seed, invariant }) => `${seed} (${invariant})`).join(', ')}`)
  io.say(
    `again: npm run world -- --seed ${sorted[0]?.seed} --hours ${hours} --nodes ${nodes} --faults ${faults}${provider === undefined ? '' : ` --provider ${provider}`}${withWorkloads.length === 0 ? '' : ` --with-workloads ${withWorkloads.join(',')}`}${['without-faults', 'only-faults'].map((flag) => (ownValue(given, flag) === undefined ? '' : ` --${flag} ${ownValue(given, flag)}`)).join('')}`,
  )
  return 1
}
