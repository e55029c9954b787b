/** An administrator who uses the same API key as the controller. */
import { connectExoscale, type ExoscaleClient } from '@tenon/provider-exoscale'
import type { Clock, Logger, Random } from '@tenon/runtime'
import { exoscaleOptions, type World } from '../../world.ts'

/** Deletes instances without the controller's knowledge. */
export class CloudAdministrator {
  readonly #api: Promise<ExoscaleClient>

  constructor(
    world: World,
    deps: { readonly clock: Clock; readonly random: Random; readonly logger: Logger },
  ) {
    this.#api = connectExoscale({
      ...deps,
      options: exoscaleOptions(),
      connect: () => ({ send: world.cluster.cloud.handle }),
    })
  }

  /** Ignores an instance that is being deleted already. */
  async deleteInstance(id: string): Promise<void> {
    const api = await this.#api
    await api.deleteInstance(id).catch(() => undefined)
  }
}
