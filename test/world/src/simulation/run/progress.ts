/** The progress output of a long command. */
import type { Moment } from '../simulation.ts'
import type { Io } from './io.ts'

const silenceMs = 5000

/** Prints progress after a while without output; a short command prints none. */
export class Progress {
  readonly #io: Pick<Io, 'say' | 'clock'>
  #saidMs: number

  constructor(io: Pick<Io, 'say' | 'clock'>) {
    this.#io = io
    this.#saidMs = io.clock.monotonic()
  }

  /** @param line computed only if it is printed. */
  tell(line: () => string): void {
    const now = this.#io.clock.monotonic()
    if (now - this.#saidMs < silenceMs) return
    this.#saidMs = now
    this.#io.say(line())
  }
}

/** Describes the progress of a run. */
export function describeMoment({ atMs, ofMs, nodes, pods, events }: Moment): string {
  const time = atMs <= ofMs ? `${timeOf(atMs)} of ${timeOf(ofMs)}` : `${timeOf(atMs)}, no more faults`
  return `at ${time}: ${pods} pods on ${nodes} nodes, ${events} events so far`
}

/** Hours, minutes and seconds of virtual time. */
export function timeOf(ms: number): string {
  const seconds = Math.floor(ms / 1000)
  const two = (value: number): string => String(value).padStart(2, '0')
  return `${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
}
