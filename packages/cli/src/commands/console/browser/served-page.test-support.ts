/** The page of this process, for a browser. */
import type { TestContext } from 'node:test'
import { SystemClock, SystemRandom } from '@tenon/runtime'
import type { Io } from '../../../io.ts'
import type { ConsoleSource } from '../facts.ts'
import { servePage, type ServedConsole } from '../serve.ts'

/** Serves it until the test ends. @returns its link. */
export async function servedPage(
  t: TestContext,
  source: ConsoleSource,
  acting?: ServedConsole['acting'],
): Promise<string> {
  const ended = new AbortController()
  const io: Io = {
    env: {},
    cwd: '/',
    out: () => undefined,
    err: () => undefined,
    input: () => Promise.resolve(''),
    isTerminal: false,
    size: () => ({ columns: 80, rows: 24 }),
    interrupted: ended.signal,
  }
  const served = await servePage(io, {
    source,
    port: 0,
    ...(acting !== undefined && { acting }),
    clock: new SystemClock(),
    random: new SystemRandom(),
  })
  t.after(async () => {
    ended.abort()
    await served.close()
  })
  return served.link
}
