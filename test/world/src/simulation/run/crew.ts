/** Runs stories on all cores. */
import { type ChildProcess, fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '@tenon/runtime'
import type { Violation } from '../invariants/scene.ts'
import type { Moment } from '../simulation.ts'
import type { Story } from '../story.ts'

/** What a child tells about a story. */
export interface Verdict {
  readonly violation?: Violation
  readonly hash: string
  readonly events: number
  readonly calmMinutes: number
  /** CPU time it took. */
  readonly cpuMs: number
}

/** Of a story that was not played to its end. @param cpuMs CPU time it took until then, if it is known. */
export function brokenOff(text: string, cpuMs: number): Verdict {
  const violation = { invariant: 'noUnexpectedError', text, atMs: 0 } as const
  return { violation, hash: '', events: 0, calmMinutes: 0, cpuMs }
}

/** What a child sends while it works on a task, and once at its end. */
export type ChildMessage<Sign, Answer> =
  | { readonly kind: 'moment'; readonly moment: Sign }
  | { readonly kind: 'verdict'; readonly verdict: Answer }

/** What is done with what the children tell. */
export interface Crew<Task, Sign, Answer> {
  /** A task is over. @returns false to begin no further ones. */
  readonly told: (task: Task, verdict: Answer) => boolean
  /** Where a task has got to, about once a second. */
  readonly underWay: (task: Task, moment: Sign) => void
}

/** Who works, and on what. */
export interface Work<Task, Answer> {
  /** Program of the children; it is sent tasks and answers with {@link ChildMessage}s. */
  readonly program: string
  /** Taken in order, one whenever a child has nothing to do. */
  readonly tasks: Iterable<Task>
  /** Of a task whose child ended, with the reason. */
  readonly broken: (reason: string) => Answer
  /** Children; one per core unless given. */
  readonly jobs?: number | undefined
  /** A child that works longer than this on a task is ended. */
  readonly limit?: { readonly ms: number; readonly clock: Pick<Clock, 'after'> }
}

/** Of Node, as in the scripts of package.json. Those of this process may be a test's, and tell where it reports. */
const childOptions = ['--max-semi-space-size=64'] as const

/** Tasks that one child does; a fresh one starts with an empty heap. */
const tasksPerChild = 25

/** Plays stories on as many children as there are cores, in order, until there are none or `told` answers false. */
export async function playAll(
  stories: Iterable<Story>,
  crew: Crew<Story, Moment, Verdict>,
  jobs?: number,
): Promise<void> {
  const program = join(import.meta.dirname, 'worker.ts')
  await workAll({ program, tasks: stories, broken: (text) => brokenOff(text, 0), jobs }, crew)
}

/** Has tasks done by children, each a process of its own, until there are none or `told` answers false. */
export async function workAll<Task extends object, Sign, Answer>(
  { program, tasks, broken, jobs = availableParallelism(), limit }: Work<Task, Answer>,
  { told, underWay }: Crew<Task, Sign, Answer>,
): Promise<void> {
  const queue = tasks[Symbol.iterator]()
  let isOver = false
  const lane = async (): Promise<void> => {
    let child: ChildProcess | undefined
    let done = 0
    try {
      for (;;) {
        if (isOver) return
        const next = queue.next()
        if (next.done === true) return
        if (child === undefined || !child.connected || ++done % tasksPerChild === 0) {
          child?.kill()
          child = fork(program, { execArgv: [...childOptions] })
        }
        const task = next.value
        const asked = child
        const cancel = limit?.clock.after(limit.ms, () => asked.kill('SIGKILL'))
        const verdict = await verdictOf(child, task, broken, (moment: Sign) => {
          underWay(task, moment)
        })
        cancel?.()
        if (!told(task, verdict)) isOver = true
      }
    } finally {
      child?.kill()
    }
  }
  await Promise.all(Array.from({ length: jobs }, lane))
}

async function verdictOf<Answer>(
  child: ChildProcess,
  task: object,
  broken: (reason: string) => Answer,
  underWay: (moment: never) => void,
): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>()
  const onMessage = (message: unknown) => {
    const said = message as ChildMessage<never, Answer>
    if (said.kind === 'moment') underWay(said.moment)
    else resolve(said.verdict)
  }
  const onExit = (code: number | null, signal: string | null) => {
    resolve(broken(`the child ended with ${code === null ? String(signal) : `code ${code}`}`))
  }
  child.on('message', onMessage)
  child.on('exit', onExit)
  child.send(task)
  try {
    return await promise
  } finally {
    child.off('message', onMessage)
    child.off('exit', onExit)
  }
}
