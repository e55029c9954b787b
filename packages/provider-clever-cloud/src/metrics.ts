/** Metrics of the provider (clever-cloud.md 12, 20). */
import type { ProviderMetric } from '@tenon/provider'

const prefix = 'karpenter_clevercloud_'

class Figure implements ProviderMetric {
  readonly name: string
  readonly help: string
  readonly type: ProviderMetric['type']
  #value = 0

  constructor(type: ProviderMetric['type'], name: string, help: string) {
    this.name = `${prefix}${name}`
    this.help = help
    this.type = type
  }

  value(): number {
    return this.#value
  }

  /** Increments a counter. */
  count(): void {
    this.#value++
  }

  /** Sets a gauge. */
  set(value: number): void {
    this.#value = value
  }
}

const counter = (name: string, help: string) => new Figure('counter', name, help)
const gauge = (name: string, help: string) => new Figure('gauge', name, help)

/** All metrics of one provider; they exist from the start. */
export class CleverMetrics {
  readonly acceptanceTimeouts = counter(
    'nodegroup_acceptance_timeouts_total',
    'NodeGroups without a response within 15 s; the launch continued.',
  )
  readonly quotaRejections = counter(
    'nodegroup_quota_rejections_total',
    'NodeGroups rejected because of the quota.',
  )
  readonly rejections = counter('nodegroup_rejections_total', 'NodeGroups rejected for another reason.')
  readonly vanished = counter(
    'nodegroup_vanished_total',
    'NodeGroups that disappeared before their node registered.',
  )
  readonly externalResizes = gauge(
    'nodegroup_external_resizes',
    'NodeGroups of Tenon with another nodeCount than 1.',
  )
  readonly syncOverdue = gauge(
    'nodegroup_sync_overdue',
    'Accepted NodeGroups without a ready node after 5 minutes.',
  )
  readonly reaped = counter(
    'gc_reaped_nodegroups_total',
    'NodeGroups deleted because their NodeClaim is gone.',
  )
  readonly refused = gauge(
    'gc_refused_nodegroups',
    'NodeGroups without a NodeClaim that are kept because their ownership is not clear.',
  )
  readonly flavorsInvalid = gauge(
    'instancetype_flavors_config_invalid',
    '1 if the file of flavors is invalid, else 0.',
  )
  readonly unknownFlavors = counter(
    'instancetype_unknown_flavor_lookups_total',
    'NodeGroups read whose flavor is not in the catalogue.',
  )
  readonly capacityRejections = counter(
    'instancetype_observed_capacity_rejections_total',
    'Nodes whose reported capacity is ignored.',
  )

  /** For the provider contract. */
  all(): readonly ProviderMetric[] {
    return Object.values(this).filter((each) => each instanceof Figure)
  }
}
