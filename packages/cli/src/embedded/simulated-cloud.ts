/** Finds the cloud that an embedded cluster runs in. */
import type { ProviderModule, ProviderSimulator } from '@tenon/provider'
import { CliError } from '../errors.ts'
import { loadProviders } from '../load-provider.ts'

/** A cloud that can be simulated. */
export interface ChosenCloud {
  /** As people write it. */
  readonly title: string
  /** The value of `--provider` that names it. */
  readonly asked: string
  readonly module: ProviderModule
  readonly simulator: ProviderSimulator
  /** All whose kinds are served. */
  readonly providers: readonly ProviderModule[]
}

/**
 * Loads the cloud and its simulator.
 * @param asked the value of `--provider`; the first cloud of the list with a simulator, when empty.
 * @param cwd see {@link loadProviders}.
 * @throws CliError when there is no such cloud, or it has no simulator.
 */
export async function simulatedCloud(asked: string = '', cwd: string): Promise<ChosenCloud> {
  const { all, chosen } = await loadProviders(asked, cwd)
  const canBeSimulated = all.filter(({ simulator }) => simulator !== undefined)
  const module = chosen ?? canBeSimulated[0]
  if (module?.simulator === undefined) {
    const names = canBeSimulated.map(({ name }) => name).join(' or ')
    throw new CliError(
      `--provider=${asked}: ${module?.title ?? 'no cloud'} cannot be simulated: its module lacks simulator, a function that answers a ProviderSimulator; add one, or use ${names}`,
    )
  }
  return {
    title: module.title,
    asked: asked === '' ? module.name : asked,
    module,
    simulator: await module.simulator(),
    providers: all,
  }
}
