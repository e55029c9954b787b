/** What goes wrong on the simulated platform. */
import { type Random, unit } from '@tenon/runtime'
import type { NodeGroup } from '@tenon/provider-clever-cloud'

/** What befalls one NodeGroup; decided when the platform first sees it. */
export type GroupEffect =
  /** Refused with `ReconcileFailed=True` and this reason; `afterMs` counts from an acceptance that came first. */
  | { readonly kind: 'refuse'; readonly reason: string; readonly message?: string; readonly afterMs?: number }
  /** Rejected by quota though there is room; told by the phase alone, or by a condition as well. */
  | {
      readonly kind: 'rejectByQuota'
      readonly tells: 'phase' | 'phaseAndCondition'
      readonly afterMs?: number
    }
  /** `ReconcileFailed=True/UpstreamError` from the answer or from `Ready=True` on; the platform recovers. */
  | { readonly kind: 'upstreamError'; readonly from: 'answer' | 'ready'; readonly forMs: number }
  /** `phase: QuotaExceeded` together with `Ready=True`. */
  | { readonly kind: 'quotaPhaseWhenReady' }
  /** No status is written for so long; forever when absent. */
  | { readonly kind: 'silent'; readonly forMs?: number }
  /** The accepted group is removed without an event, so long after its acceptance. */
  | { readonly kind: 'vanish'; readonly afterMs: number }
  /** Nodes and `Ready=True` come later than usual; both count from the creation. */
  | { readonly kind: 'slow'; readonly nodeMs?: number; readonly syncMs?: number }
  /** Its instances never come up. */
  | { readonly kind: 'neverBoots' }
  /** Its nodes register, but never get ready. */
  | { readonly kind: 'neverReady' }
  /** Someone asks for another number of nodes, so long after the creation. */
  | { readonly kind: 'resize'; readonly afterMs: number; readonly nodeCount: number }
  /** When it is deleted before it is ready, its reservation goes on counting against the quota. */
  | { readonly kind: 'leak' }
  /** Its deletion takes so much longer. */
  | { readonly kind: 'slowDeletion'; readonly moreMs: number }

/** When a fault strikes: the next `times` occasions, or each with probability `rate`; else always. */
interface Occasions {
  readonly times?: number
  /** Probability in [0, 1]. */
  readonly rate?: number
}

/** A fault of NodeGroups. */
export interface GroupFault extends Occasions {
  /** Only groups of this flavor; all when absent. */
  readonly flavor?: string
  /** Only the group of this name. */
  readonly group?: string
  readonly effect: GroupEffect
}

/** A request about NodeGroups. */
export type ApiVerb = 'create' | 'get' | 'list' | 'watch' | 'update' | 'patch' | 'delete'

/** What befalls one request to the API server. */
export type ApiEffect =
  /** Answered with an error before anything happened. */
  | { readonly kind: 'refuse'; readonly status: number; readonly reason: string; readonly message: string }
  /** The connection breaks before anything happened. */
  | { readonly kind: 'lostRequest' }
  /** The request takes effect, but its reply never arrives. */
  | { readonly kind: 'lostReply' }

/** A fault of requests about NodeGroups. */
export interface ApiFault extends Occasions {
  readonly verb: ApiVerb | '*'
  readonly effect: ApiEffect
}

/** Rules in force. */
class Rules<R extends Occasions> {
  readonly #random: Random
  #entries: { readonly rule: R; left: number }[] = []

  constructor(random: Random) {
    this.#random = random
  }

  /** Puts a rule in force; the returned function lifts it. */
  add(rule: R): () => void {
    const entry = { rule, left: rule.times ?? Number.POSITIVE_INFINITY }
    this.#entries.push(entry)
    return () => {
      this.#entries = this.#entries.filter((other) => other !== entry)
    }
  }

  /** Lifts every rule; groups that were struck stay so. */
  clear(): void {
    this.#entries = []
  }

  /** The rules that strike; uses up their `times`. */
  draw(matches: (rule: R) => boolean): R[] {
    const struck = this.#entries.filter(
      ({ rule }) => matches(rule) && (rule.rate === undefined || unit(this.#random) < rule.rate),
    )
    for (const entry of struck) entry.left--
    this.#entries = this.#entries.filter(({ left }) => left > 0)
    return struck.map(({ rule }) => rule)
  }
}

/** The faults in force. */
export class Faults {
  readonly groups: Rules<GroupFault>
  readonly api: Rules<ApiFault>

  constructor(random: Random) {
    this.groups = new Rules(random.fork('groups'))
    this.api = new Rules(random.fork('api'))
  }

  /** What befalls a group that the platform sees for the first time. */
  strike({ metadata: { name }, spec: { flavor } }: NodeGroup): readonly GroupEffect[] {
    const rules = this.groups.draw(
      (rule) => (rule.flavor ?? flavor) === flavor && (rule.group ?? name) === name,
    )
    return rules.map(({ effect }) => effect)
  }

  /** Lifts every rule. */
  clear(): void {
    this.groups.clear()
    this.api.clear()
  }
}
