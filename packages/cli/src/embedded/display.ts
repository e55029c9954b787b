import type { Clock } from '@tenon/runtime'
import type { Io } from '../io.ts'
import { type ClusterFigures, plainLine, screen } from './picture.ts'

const screenPeriodMs = 500
const linePeriodMs = 2000
const clearScreen = '\u001b[H\u001b[2J'
const showCursor = '\u001b[?25h'
const hideCursor = '\u001b[?25l'

/**
 * Shows the cluster until `signal` aborts: a live screen on a terminal, otherwise one line per change.
 * @param header printed above the screen.
 */
export async function display(
  io: Io,
  clock: Clock,
  header: () => string,
  figures: () => ClusterFigures,
  signal: AbortSignal,
): Promise<void> {
  if (!io.isTerminal) {
    await displayLines(io, clock, figures, signal)
    return
  }
  io.out(hideCursor)
  try {
    while (!signal.aborted) {
      const { columns, rows } = io.size()
      const above = header()
      io.out(`${clearScreen}${above}\n\n${screen(figures(), columns, rows - above.split('\n').length - 1)}`)
      await clock.sleep(screenPeriodMs, signal).catch(() => undefined)
    }
  } finally {
    io.out(`${showCursor}\n`)
  }
}

async function displayLines(
  io: Io,
  clock: Clock,
  figures: () => ClusterFigures,
  signal: AbortSignal,
): Promise<void> {
  let last = ''
  while (!signal.aborted) {
    const line = plainLine(figures())
    if (line !== last) io.out(`${new Date(clock.now()).toISOString().slice(11, 19)}  ${line}\n`)
    last = line
    await clock.sleep(linePeriodMs, signal).catch(() => undefined)
  }
}
