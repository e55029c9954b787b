/** Runs stories on all cores. */
import { type ChildProcess, fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import type { Clock } from '@tenon/runtime'
import type { Violation } from '../invariants/scene.ts'
import type { Moment } from '../simulation.ts'
import type { Story } from '../story.ts'

/** The result of a story. */
export interface Verdict {
  readonly violation?: Violation
  readonly hash: string
  readonly events: number
  readonly calmMinutes: number
  /** CPU time it took. */
  readonly cpuMs: number
}

/**
 * For a story that was aborted.
 * @param cpuMs CPU time until then, if known.
 */
export function brokenOff(text: string, cpuMs: number): Verdict {
  const violation = { invariant: 'noUnexpectedError', text, atMs: 0 } as const
  return { violation, hash: '', events: 0, calmMinutes: 0, cpuMs }
}

/** Sent by a child while it works on a task, and once at the end. */
export type ChildMessage<Sign, Answer> =
  | { readonly kind: 'moment'; readonly moment: Sign }
  | { readonly kind: 'verdict'; readonly verdict: Answer }

/** Handles the messages of children. */
export interface Crew<Task, Sign, Answer> {
  /**
   * A task has ended.
   * @returns false to start no further ones.
   */
  readonly ended: (task: Task, verdict: Answer) => boolean
  /** Progress of a task, about once a second. */
  readonly progress: (task: Task, moment: Sign) => void
}

/** The tasks, and the children that do them. */
export interface Work<Task, Answer> {
  /** Program of the children; it receives tasks and sends {@link ChildMessage}s. */
  readonly program: string
  /** Taken in order, whenever a child is idle. */
  readonly tasks: Iterable<Task>
  /** The result of a task whose child ended. */
  readonly broken: (reason: string) => Answer
  /** Number of children; default: one per core. */
  readonly jobs?: number | undefined
  /** A child that works longer on a task is killed. */
  readonly limit?: { readonly ms: number; readonly clock: Pick<Clock, 'after'> }
}

/**
 * Node options as in package.json. Not those of this process: it may be a test, whose options say where to
 * report.
 */
const childOptions = ['--max-semi-space-size=64'] as const

/** A child is replaced after this many tasks, to start with an empty heap. */
const tasksPerChild = 25

/** Plays stories in order on one child per core, until all are done or `ended` returns false. */
export async function playAll(
  stories: Iterable<Story>,
  crew: Crew<Story, Moment, Verdict>,
  jobs?: number,
): Promise<void> {
  const program = join(import.meta.dirname, 'worker.ts')
  await workAll({ program, tasks: stories, broken: (text) => brokenOff(text, 0), jobs }, crew)
}

/** Runs tasks in child processes until all are done or `ended` returns false. */
export async function workAll<Task extends object, Sign, Answer>(
  { program, tasks, broken, jobs = availableParallelism(), limit }: Work<Task, Answer>,
  { ended, progress }: Crew<Task, Sign, Answer>,
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
          progress(task, moment)
        })
        cancel?.()
        if (!ended(task, verdict)) isOver = true
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
  progress: (moment: never) => void,
): Promise<Answer> {
  const { promise, resolve } = Promise.withResolvers<Answer>()
  const onMessage = (sent: unknown) => {
    const message = sent as ChildMessage<never, Answer>
    if (message.kind === 'moment') progress(message.moment)
    else resolve(message.verdict)
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
