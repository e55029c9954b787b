/**
 * Default spread constraints of pods without their own, from `--scheduler-config-file` (cluster-autoscaler.md 4.4).
 */
import { type Pod, type SelectorLookups, type TopologySpreadConstraint, withDefaultSpread } from '@tenon/api'

interface Known {
  /** The added constraints as text. */
  readonly text: string
  readonly pod: Pod
}

export class DefaultSpread {
  readonly #constraints: readonly TopologySpreadConstraint[]
  /** A pod stays the same object from loop to loop, so that caches by object work. */
  readonly #known = new WeakMap<Pod, Known>()

  constructor(constraints: readonly TopologySpreadConstraint[]) {
    this.#constraints = constraints
  }

  /** The pod with default constraints. */
  read(pod: Pod, lookups: SelectorLookups | undefined): Pod {
    if (lookups === undefined) return pod
    const spread = withDefaultSpread(pod, this.#constraints, lookups)
    if (spread === pod) return pod
    const text = JSON.stringify(spread.spec.topologySpreadConstraints)
    const known = this.#known.get(pod)
    if (known?.text === text) return known.pod
    this.#known.set(pod, { text, pod: spread })
    return spread
  }
}
