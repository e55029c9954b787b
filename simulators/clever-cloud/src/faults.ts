/** Faults of the simulated platform. */
import { type Random, unit } from '@tenon/runtime'
import type { NodeGroup } from '@tenon/provider-clever-cloud'

/** What happens to one NodeGroup; decided when the platform first sees it. */
export type GroupEffect =
  /** Refused with `ReconcileFailed=True` and this reason; with `afterMs` so long after it was accepted. */
  | { readonly kind: 'refuse'; readonly reason: string; readonly message?: string; readonly afterMs?: number }
  /** Refused for quota although there is room; shown by the phase alone, or also by a condition. */
  | {
      readonly kind: 'rejectByQuota'
      readonly tells: 'phase' | 'phaseAndCondition'
      readonly afterMs?: number
    }
  /**
   * `ReconcileFailed=True/UpstreamError` from the first response or from `Ready=True` on; the platform recovers.
   */
  | { readonly kind: 'upstreamError'; readonly from: 'answer' | 'ready'; readonly forMs: number }
  /** `phase: QuotaExceeded` together with `Ready=True`. */
  | { readonly kind: 'quotaPhaseWhenReady' }
  /** No status is written for this time; default: forever. */
  | { readonly kind: 'silent'; readonly forMs?: number }
  /** The accepted group disappears without an event, this long after it was accepted. */
  | { readonly kind: 'vanish'; readonly afterMs: number }
  /** Nodes and `Ready=True` come later than usual; both since the creation. */
  | { readonly kind: 'slow'; readonly nodeMs?: number; readonly syncMs?: number }
  /** Its instances never boot. */
  | { readonly kind: 'neverBoots' }
  /** Its nodes register but never become ready. */
  | { readonly kind: 'neverReady' }
  /** A user changes the number of nodes, this long after the creation. */
  | { readonly kind: 'resize'; readonly afterMs: number; readonly nodeCount: number }
  /** If it is deleted before it is ready, its reservation still counts against the quota. */
  | { readonly kind: 'leak' }
  /** Its deletion takes longer by this time. */
  | { readonly kind: 'slowDeletion'; readonly moreMs: number }

/** When a fault occurs: the next `times` times, or each time with probability `rate`; default: always. */
interface Occasions {
  readonly times?: number
  /** Probability in [0, 1]. */
  readonly rate?: number
}

/** A fault of NodeGroups. */
export interface GroupFault extends Occasions {
  /** Only groups of this flavor; default: all. */
  readonly flavor?: string
  /** Only the group of this name. */
  readonly group?: string
  readonly effect: GroupEffect
}

/** A request about NodeGroups. */
export type ApiVerb = 'create' | 'get' | 'list' | 'watch' | 'update' | 'patch' | 'delete'

/** What happens to one request to the API server. */
export type ApiEffect =
  /** An error before anything happened. */
  | { readonly kind: 'refuse'; readonly status: number; readonly reason: string; readonly message: string }
  /** The connection breaks before anything happened. */
  | { readonly kind: 'lostRequest' }
  /** The request takes effect, but its response is lost. */
  | { readonly kind: 'lostReply' }

/** A fault of requests about NodeGroups. */
export interface ApiFault extends Occasions {
  readonly verb: ApiVerb | '*'
  readonly effect: ApiEffect
}

/** Active fault rules. */
class Rules<R extends Occasions> {
  readonly #random: Random
  #entries: { readonly rule: R; left: number }[] = []

  constructor(random: Random) {
    this.#random = random
  }

  /** Activates a rule; the returned function deactivates it. */
  add(rule: R): () => void {
    const entry = { rule, left: rule.times ?? Number.POSITIVE_INFINITY }
    this.#entries.push(entry)
    return () => {
      this.#entries = this.#entries.filter((other) => other !== entry)
    }
  }

  /** Deactivates every rule; groups with a fault keep it. */
  clear(): void {
    this.#entries = []
  }

  /** The rules that apply now; decrements their `times`. */
  draw(matches: (rule: R) => boolean): R[] {
    const struck = this.#entries.filter(
      ({ rule }) => matches(rule) && (rule.rate === undefined || unit(this.#random) < rule.rate),
    )
    for (const entry of struck) entry.left--
    this.#entries = this.#entries.filter(({ left }) => left > 0)
    return struck.map(({ rule }) => rule)
  }
}

/** The active faults. */
export class Faults {
  readonly groups: Rules<GroupFault>
  readonly api: Rules<ApiFault>

  constructor(random: Random) {
    this.groups = new Rules(random.fork('groups'))
    this.api = new Rules(random.fork('api'))
  }

  /** The faults of a group that the platform sees for the first time. */
  strike({ metadata: { name }, spec: { flavor } }: NodeGroup): readonly GroupEffect[] {
    const rules = this.groups.draw(
      (rule) => (rule.flavor ?? flavor) === flavor && (rule.group ?? name) === name,
    )
    return rules.map(({ effect }) => effect)
  }

  /** Deactivates every rule. */
  clear(): void {
    this.groups.clear()
    this.api.clear()
  }
}
