/** Plays stories on all cores. */
import { type ChildProcess, fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Violation } from '../invariants/scene.ts'
import type { Moment } from '../simulation.ts'
import type { Story } from '../story.ts'

/** What a child tells about a story. */
export interface Verdict {
  readonly violation?: Violation
  readonly hash: string
  readonly events: number
  readonly calmMinutes: number
  /** Processor time it took. */
  readonly cpuMs: number
}

/** Of a story that was not played to its end. @param cpuMs processor time it took until then, if it is known. */
export function brokenOff(text: string, cpuMs: number): Verdict {
  const violation = { invariant: 'noUnexpectedError', text, atMs: 0 } as const
  return { violation, hash: '', events: 0, calmMinutes: 0, cpuMs }
}

/** What a child sends while it plays a story, and once at its end. */
export type ChildMessage =
  | { readonly kind: 'moment'; readonly moment: Moment }
  | { readonly kind: 'verdict'; readonly verdict: Verdict }

/** What is done with what the children tell. */
export interface Crew {
  /** A story is over. @returns false to play no further ones. */
  readonly told: (story: Story, verdict: Verdict) => boolean
  /** Where a story has got to, about once a second. */
  readonly underWay: (story: Story, moment: Moment) => void
}

/** Of Node, as in the scripts of package.json. Those of this process may be a test's, and tell where it reports. */
const childOptions = ['--max-semi-space-size=64'] as const

/** Stories that one child plays; a fresh one starts with an empty heap. */
const storiesPerChild = 25

/**
 * Plays stories on as many children as there are cores, in order, until there are none or
 * `told` answers false.
 */
export async function playAll(
  stories: Iterable<Story>,
  { told, underWay }: Crew,
  jobs: number = availableParallelism(),
): Promise<void> {
  const queue = stories[Symbol.iterator]()
  let isOver = false
  const lane = async (): Promise<void> => {
    let child: ChildProcess | undefined
    let played = 0
    try {
      for (;;) {
        if (isOver) return
        const next = queue.next()
        if (next.done === true) return
        if (child === undefined || !child.connected || ++played % storiesPerChild === 0) {
          child?.kill()
          child = fork(join(import.meta.dirname, 'worker.ts'), { execArgv: [...childOptions] })
        }
        const story = next.value
        const verdict = await verdictOf(child, story, (moment) => {
          underWay(story, moment)
        })
        if (!told(story, verdict)) isOver = true
      }
    } finally {
      child?.kill()
    }
  }
  await Promise.all(Array.from({ length: jobs }, lane))
}

async function verdictOf(
  child: ChildProcess,
  story: Story,
  underWay: (moment: Moment) => void,
): Promise<Verdict> {
  const { promise, resolve } = Promise.withResolvers<Verdict>()
  const onMessage = (message: unknown) => {
    const said = message as ChildMessage
    if (said.kind === 'moment') underWay(said.moment)
    else resolve(said.verdict)
  }
  const onExit = (code: number | null) => {
    resolve(brokenOff(`the child ended with code ${String(code)}`, 0))
  }
  child.on('message', onMessage)
  child.on('exit', onExit)
  child.send(story)
  try {
    return await promise
  } finally {
    child.off('message', onMessage)
    child.off('exit', onExit)
  }
}
