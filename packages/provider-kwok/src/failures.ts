/** Simulates the failures that node classes request. */
import type { InstanceType } from '@tenon/api'
import { ProviderError } from '@tenon/provider'
import { type Clock, type Logger, type Random, unit } from '@tenon/runtime'
import {
  type FailureSettings,
  failureSettings,
  offeringRef,
  selects,
  listedTypes,
} from './failure-settings.ts'
import type { Choice } from './launch.ts'
import type { KwokNodeClass } from './nodeclass.ts'

/** What simulated failures need. */
export interface FailureDependencies {
  readonly clock: Clock
  readonly random: Random
  readonly logger: Logger
}

interface Listed {
  readonly from: readonly InstanceType[]
  readonly types: readonly InstanceType[]
}

/** The failures of all node classes, with their state. */
export class Failures {
  readonly #deps: FailureDependencies
  readonly #settings = new WeakMap<KwokNodeClass, FailureSettings>()
  readonly #listed = new WeakMap<FailureSettings, Listed>()
  /** Problems that were logged already. */
  readonly #problems = new Set<string>()
  /** Calls that are left, by node class. */
  readonly #allowances = new Map<string, { readonly left: number; readonly atMs: number }>()
  /** When instances whose deletion was accepted disappear, by provider ID. */
  readonly #ends = new Map<string, number>()

  constructor(deps: FailureDependencies) {
    this.#deps = deps
  }

  /** The settings of a node class; each invalid annotation is logged once. */
  settingsOf(nodeClass: KwokNodeClass | undefined): FailureSettings {
    const known = nodeClass && this.#settings.get(nodeClass)
    if (known !== undefined) return known
    const { settings, problems } = failureSettings(nodeClass)
    for (const problem of problems) {
      if (this.#problems.has(problem)) continue
      this.#problems.add(problem)
      this.#deps.logger.error('an annotation for simulated failures has no effect', { error: problem })
    }
    if (nodeClass !== undefined) this.#settings.set(nodeClass, settings)
    return settings
  }

  /** The types as the catalogue lists them for a node class. */
  listed(types: readonly InstanceType[], settings: FailureSettings): readonly InstanceType[] {
    const known = this.#listed.get(settings)
    if (known?.from === types) return known.types
    const listed = listedTypes(types, settings)
    this.#listed.set(settings, { from: types, types: listed })
    return listed
  }

  /** @throws ProviderError `throttled` when a node class has used up its calls of this second. */
  throttle(nodeClass: string, { rateLimit }: FailureSettings): void {
    if (rateLimit === undefined) return
    const nowMs = this.#deps.clock.now()
    const most = Math.max(1, rateLimit)
    const { left, atMs } = this.#allowances.get(nodeClass) ?? {
      left: rateLimit === 0 ? 0 : most,
      atMs: nowMs,
    }
    const allowance = Math.min(most, left + ((nowMs - atMs) / 1000) * rateLimit)
    const isAllowed = rateLimit > 0 && allowance >= 1
    this.#allowances.set(nodeClass, { left: isAllowed ? allowance - 1 : allowance, atMs: nowMs })
    if (isAllowed) return
    const retryAfterMs = rateLimit === 0 ? undefined : Math.ceil(((1 - allowance) / rateLimit) * 1000)
    throw new ProviderError(
      'throttled',
      `more than ${rateLimit} calls a second for KWOKNodeClass ${nodeClass}`,
      retryAfterMs === undefined ? {} : { retryAfterMs },
    )
  }

  /** @throws ProviderError `insufficientCapacity` when this launch must fail. */
  refuse({ type, offering }: Choice, { capacityErrors, outages }: FailureSettings): void {
    const ref = offeringRef(type.name, offering)
    const isOut = selects(outages, ref)
    if (!isOut && (capacityErrors === 0 || unit(this.#deps.random) >= capacityErrors)) return
    throw new ProviderError(
      'insufficientCapacity',
      `${ref.instanceType} in ${ref.zone} as ${ref.capacityType} is not available: ${isOut ? 'simulated outage' : 'simulated shortage'}`,
      { offerings: [ref] },
    )
  }

  /**
   * Starts or continues the deletion of an instance.
   * @returns whether it is gone.
   */
  hasEnded(providerID: string, { terminationDelayMs }: FailureSettings): boolean {
    const nowMs = this.#deps.clock.now()
    const endMs = this.#ends.get(providerID) ?? nowMs + terminationDelayMs
    const isOver = nowMs >= endMs
    if (isOver) this.#ends.delete(providerID)
    else this.#ends.set(providerID, endMs)
    return isOver
  }

  /** Whether an instance still exists although its deletion was accepted. */
  isEnding(providerID: string): boolean {
    return this.#deps.clock.now() < (this.#ends.get(providerID) ?? 0)
  }
}
