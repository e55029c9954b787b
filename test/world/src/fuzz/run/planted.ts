/** `npm run fuzz -- --planted`: plants one fault after the other and requires that fuzzing finds each. */
import { listFlag, numberFlag, readFlags } from '../../simulation/run/arguments.ts'
import { workAll } from '../../simulation/run/crew.ts'
import { Progress } from '../../simulation/run/progress.ts'
import { plantedFault, plantedFaults } from '../planted/faults.ts'
import type { PlantedFault } from '../planted/planted-fault.ts'
import { broken, longestCaseMs, program } from './fuzz.ts'
import type { Io, Task, Verdict } from './tasks.ts'

/** @returns the exit code: 1 if a fault was not found. */
export async function findPlanted(io: Io): Promise<number> {
  const given = readFlags(io.args, ['only', 'minutes', 'seed', 'jobs'])
  const names = plantedFaults.map(({ name }) => name)
  const faults = (given['only'] === undefined ? names : listFlag('only', given['only'], names)).map(
    plantedFault,
  )
  const minutes = numberFlag('minutes', given['minutes'], 10)
  const first = numberFlag('seed', given['seed'], 1)
  const jobs = given['jobs'] === undefined ? undefined : numberFlag('jobs', given['jobs'], 1, 1)
  let missed = 0
  for (const fault of faults) if (!(await isFound(io, fault, { minutes, first, jobs }))) missed++
  io.say(`${faults.length - missed} of ${faults.length} planted faults found`)
  return missed === 0 ? 0 : 1
}

async function isFound(
  io: Io,
  { name, mistake, part }: PlantedFault,
  plan: { readonly minutes: number; readonly first: number; readonly jobs: number | undefined },
): Promise<boolean> {
  const startMs = io.clock.monotonic()
  const seconds = (): string => ((io.clock.monotonic() - startMs) / 1000).toFixed(1)
  const progress = new Progress(io)
  let played = 0
  let isOver = false
  function* tasks(): Generator<Task> {
    for (let seed = plan.first; io.clock.monotonic() - startMs < plan.minutes * 60_000; seed++)
      yield { part, seed, fault: name }
  }
  await workAll<Task, never, Verdict>(
    { program, tasks: tasks(), broken, jobs: plan.jobs, limit: { ms: longestCaseMs, clock: io.clock } },
    {
      ended: ({ seed }, { findings }) => {
        played++
        const [finding] = findings
        if (finding !== undefined && !isOver) {
          isOver = true
          io.say(`${name} (${mistake}): found by ${part} ${seed} after ${played} case(s), ${seconds()} s`)
          io.say(`  ${finding.oracle}: ${finding.text.slice(0, 300)}`)
        }
        progress.tell(() => `${name}: ${played} cases, ${seconds()} s`)
        return !isOver
      },
      progress: () => undefined,
    },
  )
  if (!isOver) io.say(`NOT FOUND: ${name} (${mistake}): ${played} cases of ${part}, ${seconds()} s`)
  return isOver
}
