/** Finds the simulated cloud of an embedded cluster. */
import type { ProviderModule, ProviderSimulator } from '@tenon/provider'
import { CliError } from '../errors.ts'
import { loadProviders } from '../load-provider.ts'

/** A cloud with a simulator. */
export interface ChosenCloud {
  /** Name for people. */
  readonly title: string
  /** Its value of `--provider`. */
  readonly asked: string
  readonly module: ProviderModule
  readonly simulator: ProviderSimulator
  /** Providers whose kinds are served. */
  readonly providers: readonly ProviderModule[]
}

/**
 * Loads the cloud and its simulator.
 * @param asked the value of `--provider`; if empty, the first cloud with a simulator.
 * @param cwd see {@link loadProviders}.
 * @throws CliError if there is no such cloud, or it has no simulator.
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
