/** Asks the cloud for the instance of each claim, once, and with pauses after failures. */
import { labels, type NodeClaim } from '@tenon/api'
import { withDeadline } from '@tenon/kube'
import { type CloudProvider, isProviderError, type ProviderInstance } from '@tenon/provider'
import type { Clock } from '@tenon/runtime'
import { upperCamel } from '../../journal/upper-camel.ts'
import type { ObservedPools } from '../../state/nodepools/observed-pools.ts'
import type { LifecycleDeadlines } from './deadlines.ts'
import type { ClaimDraft } from './stage.ts'
import type { ClaimJournal } from '../../journal/claim-journal.ts'
import type { ClusterState } from '../../state/cluster-state.ts'

interface Dependencies {
  readonly provider: Pick<CloudProvider, 'create'>
  readonly state: Pick<ClusterState, 'brake' | 'launchFailures'>
  readonly deadlines: Pick<LifecycleDeadlines, 'isOverdue'>
  readonly clock: Clock
  readonly claimJournal: ClaimJournal
  readonly observed: Pick<ObservedPools, 'has'>
}

/** When a claim of an observed NodePool is checked again. */
const observedMs = 60_000
const resultTtlMs = 60 * 60_000
const messageLimitBytes = 300
/** Pauses between attempts of one claim; held here because writing the failure wakes the claim again. */
const retry = { baseMs: 1000, capMs: 60_000 }
/** A launch that begins when it should be over has this long to find the instance of an earlier one. */
const overdueLaunchMs = 60_000
/** When it is checked again whether launches are still paused. */
const heldMs = 5_000

type LaunchOutcome =
  | { readonly kind: 'launched'; readonly instance: ProviderInstance }
  /** The last attempt failed a short while ago. */
  | { readonly kind: 'postponed'; readonly forMs: number }
  | { readonly kind: 'failed'; readonly error: unknown }

/** Remembers answers, so that a lagging cache never launches twice. */
export class InstanceLaunches {
  readonly #deps: Dependencies
  readonly #results = new Map<string, { readonly instance: ProviderInstance; readonly expiresMs: number }>()
  readonly #failures = new Map<string, { readonly count: number; readonly nextMs: number }>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** Forgets the answer: the claim has it stored now. */
  forget({ metadata }: NodeClaim): void {
    this.#results.delete(metadata.uid ?? '')
  }

  /** @throws what the provider throws once `signal` aborts; otherwise a failure is an outcome. */
  async launch(draft: ClaimDraft, signal: AbortSignal): Promise<LaunchOutcome> {
    const { claimJournal, clock, deadlines, observed, state } = this.#deps
    const { claim } = draft
    const uid = claim.metadata.uid ?? ''
    this.#sweep()
    const known = this.#results.get(uid)
    if (known !== undefined) return { kind: 'launched', instance: known.instance }
    if (state.brake.holding(poolOf(claim), 'launches') !== undefined)
      return { kind: 'postponed', forMs: heldMs }
    if (observed.has(poolOf(claim))) return { kind: 'postponed', forMs: observedMs }
    const forMs = (this.#failures.get(uid)?.nextMs ?? 0) - clock.now()
    if (forMs > 0) return { kind: 'postponed', forMs }
    try {
      const instance = await this.#created(claim, signal, deadlines.isOverdue(draft))
      this.#failures.delete(uid)
      state.launchFailures.delete(poolOf(claim))
      this.#results.set(uid, { instance, expiresMs: clock.now() + resultTtlMs })
      claimJournal.launched(withLabelsOf(claim, instance))
      return { kind: 'launched', instance }
    } catch (error) {
      if (signal.aborted) throw error
      const detail = isProviderError(error) ? error.detail : String(error)
      state.launchFailures.set(poolOf(claim), truncated(detail))
      const reason = isProviderError(error) ? upperCamel(error.kind) : 'LaunchFailed'
      claimJournal.launchFailed(claim, reason, truncated(detail))
      this.#postpone(uid)
      return { kind: 'failed', error }
    }
  }

  /**
   * Providers may wait for long. A process that finds an overdue claim does not begin that wait anew, or
   * processes that follow each other closely would never come to the end of the claim.
   */
  async #created(claim: NodeClaim, signal: AbortSignal, isOverdue: boolean): Promise<ProviderInstance> {
    const { provider, clock } = this.#deps
    if (!isOverdue) return await provider.create(claim, signal)
    const late = () => new Error(`no instance was found within ${overdueLaunchMs / 1000} s`)
    return await withDeadline(clock, { ms: overdueLaunchMs, late, signal }, (limited) =>
      provider.create(claim, limited),
    )
  }

  #postpone(uid: string): void {
    const count = (this.#failures.get(uid)?.count ?? 0) + 1
    const pauseMs = Math.min(retry.capMs, retry.baseMs * 2 ** (count - 1))
    this.#failures.set(uid, { count, nextMs: this.#deps.clock.now() + pauseMs })
  }

  #sweep(): void {
    const now = this.#deps.clock.now()
    for (const [uid, { nextMs }] of this.#failures)
      if (nextMs + resultTtlMs <= now) this.#failures.delete(uid)
    for (const [uid, { expiresMs }] of this.#results) if (expiresMs <= now) this.#results.delete(uid)
  }
}

function withLabelsOf(claim: NodeClaim, instance: ProviderInstance): NodeClaim {
  const { metadata } = claim
  return { ...claim, metadata: { ...metadata, labels: { ...instance.labels, ...metadata.labels } } }
}

const poolOf = ({ metadata }: NodeClaim): string => metadata.labels?.[labels.nodePool] ?? ''

/** Cut by bytes, as Karpenter does, at the end of a whole character. */
export function truncated(text: string): string {
  const head = new Uint8Array(messageLimitBytes)
  const { read, written } = new TextEncoder().encodeInto(text, head)
  const isShort = read === text.length && written < messageLimitBytes
  return isShort ? text : `${text.slice(0, read)}...`
}
