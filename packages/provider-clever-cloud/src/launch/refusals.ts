/** The consequences of a refused NodeGroup (clever-cloud.md 20). */
import { capacityTypes, type NodeClaim } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import { type OfferingRef, ProviderError, type RefusedOffering } from '@tenon/provider'
import type { FlavorSize } from '../catalogue/flavors.ts'
import type { CleverMetrics } from '../metrics.ts'

const minuteMs = 60_000
/** For a flavor whose quota is used up, and for flavors that need at least as much of it. */
const quotaPauseMs = { own: minuteMs, larger: 2 * minuteMs } as const
const refusalPauseMs = 5 * minuteMs

/** Why a NodeGroup gets no node. */
export type Refusal =
  | { readonly kind: 'overQuota'; readonly message: string }
  | { readonly kind: 'refused'; readonly reason: string; readonly message: string }
  | { readonly kind: 'vanished' }

export interface RefusalsDependencies {
  readonly region: string
  /** Sizes of the offered flavors. */
  readonly sizes: () => readonly FlavorSize[]
  readonly events: EventRecorder
  readonly metrics: Pick<CleverMetrics, 'quotaRejections' | 'rejections' | 'vanished'>
}

/** Counts refusals, reports them, and decides what later launches avoid. */
export class Refusals {
  readonly #deps: RefusalsDependencies

  constructor(deps: RefusalsDependencies) {
    this.#deps = deps
  }

  /** Records that a claim was refused a node of a flavor; returns the error of the launch. */
  note(claim: NodeClaim, flavor: string, refusal: Refusal): ProviderError {
    const { events } = this.#deps
    const offerings = this.#offerings(flavor, refusal)
    const what = this.#count(flavor, refusal)
    const pauses = offerings.map(
      ({ instanceType, pauseMs = 0 }) => `${instanceType} for ${pauseMs / minuteMs} min`,
    )
    events.record({
      object: claim,
      type: 'Warning',
      reason: eventReasons[refusal.kind],
      message: `${what}; not tried again: ${pauses.join(', ')}. ${fixes[refusal.kind]}`,
      dedupe: [claim.metadata.name],
    })
    return new ProviderError('insufficientCapacity', what, { offerings })
  }

  #count(flavor: string, refusal: Refusal): string {
    const { quotaRejections, rejections, vanished } = this.#deps.metrics
    switch (refusal.kind) {
      case 'overQuota':
        quotaRejections.count()
        return `the quota of the organisation does not allow a node of flavor ${flavor}${said(refusal.message)}`
      case 'refused':
        rejections.count()
        return `Clever Cloud refused a node of flavor ${flavor}${said(refusal.message, refusal.reason)}`
      case 'vanished':
        vanished.count()
        return `Clever Cloud removed the NodeGroup of flavor ${flavor} before it had a node`
    }
  }

  #offerings(flavor: string, { kind }: Refusal): readonly RefusedOffering[] {
    const ref = (instanceType: string): OfferingRef => ({
      instanceType,
      zone: this.#deps.region,
      capacityType: capacityTypes.onDemand,
    })
    if (kind === 'refused') return [{ ...ref(flavor), pauseMs: refusalPauseMs }]
    const sizes = this.#deps.sizes()
    const own = sizes.find(({ name }) => name === flavor)
    const larger =
      own === undefined
        ? []
        : sizes.filter(
            ({ name, cpu, memoryKi }) => name !== flavor && cpu >= own.cpu && memoryKi >= own.memoryKi,
          )
    return [
      { ...ref(flavor), pauseMs: quotaPauseMs.own, endsOnRelease: true },
      ...larger.map(({ name }) => ({ ...ref(name), pauseMs: quotaPauseMs.larger, endsOnRelease: true })),
    ]
  }
}

const eventReasons = {
  overQuota: 'NodeGroupQuotaExceeded',
  refused: 'NodeGroupRejected',
  vanished: 'NodeGroupVanished',
} as const

const fixes = {
  overQuota: "Ask Clever Cloud for more quota, or lower the NodePool's spec.limits",
  refused: 'Allow other flavors in the NodePool, or ask Clever Cloud about the reason',
  vanished: 'The quota may be used up; the pods of the NodeClaim are scheduled again',
} as const

function said(message: string, reason = ''): string {
  const text = [reason, message].filter((part) => part !== '').join(': ')
  return text === '' ? '' : ` (${text})`
}
