/** Launches nodes for pods that cannot be scheduled (scheduling.md 3, 12). */
import type { Clock } from '@tenon/runtime'
import type { LoopSpec } from '../controller.ts'
import type { Batcher } from './batcher.ts'
import type { PassAccount } from './pass-account.ts'
import type { LaunchOutcome } from './claims/claim-launches.ts'

/** What has to be seen to before a decision. */
interface Preparation {
  settle(signal: AbortSignal): Promise<void>
}

/** What this file works with. */
interface Dependencies {
  readonly batcher: Batcher
  /** Each follows the cluster until the function that it returns is called. */
  readonly followers: readonly { follow(): () => void }[]
  /** In order. */
  readonly preparations: readonly Preparation[]
  readonly pass: { run(signal: AbortSignal): Promise<LaunchOutcome> }
  readonly account: PassAccount
  readonly clock: Clock
}

/** Runs until `signal` aborts. A pass that fails or is overtaken is tried again; errors are logged. */
export class Provisioner implements LoopSpec {
  readonly name = 'provisioner'
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async loop(signal: AbortSignal): Promise<void> {
    const { account, batcher, clock, followers, pass, preparations } = this.#deps
    account.open()
    const stops = followers.map((each) => each.follow())
    let failures = 0
    while (!signal.aborted) {
      try {
        await batcher.wait(signal)
        account.begin()
        for (const preparation of preparations) await preparation.settle(signal)
        if ((await pass.run(signal)) === 'done') {
          account.succeeded()
          failures = 0
          continue
        }
        account.overtaken()
      } catch (error) {
        if (signal.aborted) break
        account.failed(error)
      }
      failures++
      await clock.sleep(Math.min(10_000, 2 ** failures * 100), signal).catch(() => undefined)
      batcher.trigger('retry')
    }
    for (const stop of stops) stop()
  }
}
