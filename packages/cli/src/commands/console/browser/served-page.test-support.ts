/** The page of this process, for a browser. */
import type { TestContext } from 'node:test'
import { SystemClock, SystemRandom } from '@tenon/runtime'
import { quietIo } from '../../../testing/quiet-io.test-support.ts'
import type { ConsoleSource } from '../facts.ts'
import { servePage, type ServedConsole } from '../serve.ts'

/** Serves it until the test ends. @returns its link. */
export async function servedPage(
  t: TestContext,
  source: ConsoleSource,
  acting?: ServedConsole['acting'],
): Promise<string> {
  const ended = new AbortController()
  const served = await servePage(quietIo(ended.signal), {
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
