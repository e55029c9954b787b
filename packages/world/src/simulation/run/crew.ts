/** Plays stories on all cores. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Violation } from '../invariants/scene.ts'
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

/** Stories that one child plays; a fresh one starts with an empty heap. */
const storiesPerChild = 25

/**
 * Plays stories on as many children as there are cores, in order, until there are none or
 * `told` answers false.
 */
export async function playAll(
  stories: Iterable<Story>,
  told: (story: Story, verdict: Verdict) => boolean,
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
          child = fork(join(import.meta.dirname, 'worker.ts'))
        }
        const verdict = await verdictOf(child, next.value)
        if (!told(next.value, verdict)) isOver = true
      }
    } finally {
      child?.kill()
    }
  }
  await Promise.all(Array.from({ length: jobs }, lane))
}

async function verdictOf(child: ChildProcess, story: Story): Promise<Verdict> {
  const waiting = new AbortController()
  const { signal } = waiting
  const gone = once(child, 'exit', { signal }).then(
    ([code]): Verdict => ({
      violation: {
        invariant: 'noUnexpectedError',
        text: `the child ended with code ${String(code)}`,
        atMs: 0,
      },
      hash: '',
      events: 0,
      calmMinutes: 0,
      cpuMs: 0,
    }),
  )
  gone.catch(() => undefined)
  child.send(story)
  try {
    return await Promise.race([
      once(child, 'message', { signal }).then(([message]) => message as Verdict),
      gone,
    ])
  } finally {
    waiting.abort()
  }
}
