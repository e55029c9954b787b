import type { Coverage, Ran } from './coverage.ts'
import type { Flow } from './flows.ts'

interface Played {
  /** What the flow ran in files that idle does not enter. */
  readonly own: Ran
  /** Every file of which a function ran: at the start, when idle, or in the flow. */
  readonly ran: ReadonlySet<string>
}

/** Plays a flow, and subtracts what runs without it. */
export async function play(coverage: Coverage, open: () => Promise<Flow>): Promise<Played> {
  const flow = await open()
  const start = coverage.take()
  await flow.idle()
  const idle = coverage.take()
  await flow.lead?.()
  const lead = coverage.take()
  let played: Ran | undefined
  await flow.play(() => (played ??= coverage.take()))
  played ??= coverage.take()
  await flow.close()
  const own: Ran = new Map([...played].filter(([file]) => isProduct(file) && !idle.has(file)))
  return { own, ran: new Set([start, idle, lead, played].flatMap((ran) => [...ran.keys()])) }
}

/** The files that a flow enters, in order of their first entry; the flow is played again to find out. */
export async function walk(coverage: Coverage, open: () => Promise<Flow>): Promise<readonly string[]> {
  const { own } = await play(coverage, open)
  const flow = await open()
  await flow.idle()
  await flow.lead?.()
  const entered = coverage.entries(own)
  await flow.play(() => {})
  await flow.close()
  // What runs once per process, such as filling a cache, comes last.
  return [...new Set([...entered, ...own.keys()])]
}

/** The embedded cluster, simulated clouds and the world only play the surroundings. */
function isProduct(file: string): boolean {
  return (
    file.startsWith('packages/') &&
    !/^packages\/(devcluster|filters)\//.test(file) &&
    !/test-support/.test(file)
  )
}
