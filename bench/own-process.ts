/** Runs measurements in their own processes, so that they do not share heap and compiled code. */
import { fork } from 'node:child_process'
import { text } from 'node:stream/consumers'

/**
 * Runs a module with arguments that make it send one measurement to its parent.
 * @returns the message, and its standard output.
 * @throws Error with the workload's name if it ends otherwise.
 */
export async function measuredElsewhere(
  name: string,
  module: string,
  args: readonly string[],
): Promise<{ readonly measured: unknown; readonly output: string }> {
  const child = fork(module, args, { stdio: ['ignore', 'pipe', 'inherit', 'ipc'] })
  const received: unknown[] = []
  child.on('message', (message) => received.push(message))
  const closed = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  const [output, code] = await Promise.all([child.stdout ? text(child.stdout) : '', closed])
  const [measured] = received
  if (measured === undefined || code !== 0) throw new Error(`${name} ended with code ${code}`)
  return { measured, output }
}
