/** Cases of the part `stories`: short stories of the world with misleading faults. */
import { SeededRandom } from '@tenon/runtime'
import type { PlantedBug } from '../simulation/planted/planted-bug.ts'
import { simulate } from '../simulation/simulation.ts'
import { Dice } from '../simulation/workload/workload-context.ts'
import { aStory, type FaultKind, faultKinds, type Story } from '../simulation/story.ts'
import type { Finding } from './case.ts'

const deceptions = [
  'lateWatch',
  'wrongList',
  'falseDeletion',
  'otherCluster',
  'laggingCloud',
  'lyingCloud',
  'stubbornScheduler',
  'renamedKubelet',
  'kubeletLabels',
  'starvation',
] as const satisfies readonly FaultKind[]

/** Generates the story of a seed; deterministic. */
export function drawStory(seed: number): Story {
  const dice = new Dice(new SeededRandom(`fuzz-stories-${seed}`))
  const one = dice.oneOf(deceptions)
  const kinds = new Set<FaultKind>(deceptions.filter((kind) => kind === one || dice.chance(0.4)))
  return aStory(seed, {
    hours: dice.oneOf([0.2, 0.3, 0.5]),
    nodes: dice.oneOf([2, 4, 6]),
    faults: 'storm',
    withoutFaults: faultKinds.filter((kind) => !kinds.has(kind)),
  })
}

/** Plays a story; findings contain the command to replay it. */
export async function judgeStory(
  story: Story,
  bug?: PlantedBug,
): Promise<{ readonly findings: readonly Finding[]; readonly pods: number; readonly nodes: number }> {
  const { violation, mostPods: pods, mostNodes: nodes } = await simulate(story, bug)
  if (violation === undefined) return { findings: [], pods, nodes }
  const kinds = faultKinds.filter((kind) => !story.withoutFaults.includes(kind))
  const again = `npm run world -- --seed ${story.seed} --hours ${story.hours} --nodes ${story.nodes} --faults ${story.faults} --only-faults ${kinds.join(',')}`
  const text = `${violation.invariant}: ${violation.text}; again, and smaller: ${again}`
  return { findings: [{ oracle: 'invariantsHold', text, atMs: violation.atMs }], pods, nodes }
}
