/** Child process of `npm run fuzz`: judges or shrinks the cases it is sent, one after the other. */
import type { ChildMessage } from '../../simulation/run/crew.ts'
import type { Case, Finding } from '../case.ts'
import { drawCase } from '../generate/draw.ts'
import { judge } from '../judge.ts'
import { plantedFault } from '../planted/faults.ts'
import { shrinkCase } from '../shrink-case.ts'
import { drawStory, judgeStory } from '../stories.ts'
import type { Task, Verdict } from './tasks.ts'

const send = (message: ChildMessage<never, Verdict>): void => {
  process.send?.(message)
}

process.on('message', (message) => {
  void (async () => {
    try {
      send({ kind: 'verdict', verdict: await verdictOn(message as Task) })
    } catch (error) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error)
      const findings: readonly Finding[] = [{ oracle: 'noThrow', text, atMs: 0 }]
      send({ kind: 'verdict', verdict: { findings, pods: 0, nodes: 0 } })
    }
  })()
})

async function verdictOn({ count = 1, ...task }: Task): Promise<Verdict> {
  let [pods, nodes] = [0, 0]
  for (let seed = task.seed; seed < task.seed + count; seed++) {
    const verdict = await verdictOnOne({ ...task, seed })
    pods += verdict.pods
    nodes += verdict.nodes
    if (verdict.findings.length > 0) return { ...verdict, seed, pods, nodes }
  }
  return { findings: [], pods, nodes }
}

async function verdictOnOne({ part, seed, fault: name, shrink }: Task): Promise<Verdict> {
  if (part === 'stories') return await judgeStory(drawStory(seed))
  const given = drawCase(part, seed)
  const fault = name === undefined ? undefined : plantedFault(name)
  const { findings, pods, nodes } = await judge(given, fault)
  if (shrink !== undefined) {
    const found = findings.find(({ oracle }) => oracle === shrink.oracle)
    if (found === undefined) return { findings, pods, nodes }
    const endMs = performance.now() + shrink.seconds * 1000
    const attempt = async (smaller: Case): Promise<Finding | undefined> => {
      // A case that cannot be judged does not count as smaller.
      const wrong = await judge(smaller, fault).catch(() => undefined)
      return wrong?.findings.find((each) => isAlike(each, found))
    }
    const smaller = await shrinkCase(
      { case: given, finding: found },
      attempt,
      () => performance.now() < endMs,
    )
    return { findings, pods, nodes, smaller }
  }
  if (fault === undefined || findings.length === 0) return { findings, pods, nodes }
  // A finding that occurs without the fault too is unrelated to it.
  const usual = new Set((await judge(given)).findings.map(({ oracle }) => oracle))
  return { findings: findings.filter(({ oracle }) => !usual.has(oracle)), pods, nodes }
}

/** Whether two findings have the same cause, judging by their texts. */
function isAlike(a: Finding, b: Finding): boolean {
  if (a.oracle !== b.oracle) return false
  return a.oracle !== 'noThrow' || firstFrame(a.text) === firstFrame(b.text)
}

const firstFrame = (text: string): string | undefined => /at [^\n]*?\/([\w-]+\.ts:\d+)/.exec(text)?.[1]
