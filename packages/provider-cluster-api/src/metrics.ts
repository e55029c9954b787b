/** Metrics of the provider. */
import type { ProviderMetric } from '@tenon/provider'

class Figure implements ProviderMetric {
  readonly name: string
  readonly help: string
  readonly type: ProviderMetric['type']
  readonly #read: (() => number | undefined) | undefined
  #count = 0

  constructor(type: ProviderMetric['type'], name: string, help: string, read?: () => number | undefined) {
    this.name = `karpenter_clusterapi_${name}`
    this.help = help
    this.type = type
    this.#read = read
  }

  value(): number | undefined {
    return this.#read === undefined ? this.#count : this.#read()
  }

  /** Increments a counter. */
  count(): void {
    this.#count++
  }
}

/** All metrics of one provider; they exist from the start. */
export class ClusterApiMetrics {
  readonly reaped: Figure = new Figure(
    'counter',
    'machines_reaped_total',
    'Machines deleted because their NodeClaim did not exist.',
  )
  readonly givenBack: Figure = new Figure(
    'counter',
    'machines_given_back_total',
    'Machines deleted because they were created for NodeClaims and none used them.',
  )
  readonly #hub: Figure

  /** @param isOpen whether the management cluster has been read. */
  constructor(isOpen: () => boolean) {
    this.#hub = new Figure('gauge', 'hub_open', '1 once the management cluster has been read.', () =>
      isOpen() ? 1 : 0,
    )
  }

  all(): readonly ProviderMetric[] {
    return [this.reaped, this.givenBack, this.#hub]
  }
}
