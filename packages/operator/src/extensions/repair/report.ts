/** Events and metrics of repairs (wanted.md 2). */
import { labels, type Node, type NodeClaim, type NodePool } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { Metrics } from '../../metrics/metrics.ts'
import { doNotRepairAnnotation, type HeldRepair, readVeto } from './rules.ts'

const blockedTtlMs = 15 * 60_000
const annotationTtlMs = 60 * 60_000

export class RepairReport {
  readonly #events: EventRecorder
  readonly #metrics: Pick<Metrics, 'nodeRepairBrakes' | 'nodeRepairs'>
  readonly #clock: Pick<Clock, 'now'>
  /** Until when failures of zones last that were reported; the cluster has the empty name. */
  readonly #reported = new Map<string, number>()

  constructor({
    clock,
    events,
    metrics,
  }: {
    readonly clock: Pick<Clock, 'now'>
    readonly events: EventRecorder
    readonly metrics: Pick<Metrics, 'nodeRepairBrakes' | 'nodeRepairs'>
  }) {
    this.#clock = clock
    this.#events = events
    this.#metrics = metrics
  }

  /** Records that a node is not repaired now; the failure of a zone once, and what a NodePool is set to not at all. */
  held(node: Node, claim: NodeClaim, pool: NodePool | undefined, { because, by, failure }: HeldRepair): void {
    if (by === 'off') return
    if (failure !== undefined && !this.#isNew(failure.zone ?? '', failure.untilMs)) return
    const { uid = node.metadata.name } = node.metadata
    const ofPool = by === 'blocked' || by === 'full'
    if (ofPool && pool === undefined && claim.metadata.labels?.[labels.nodePool] !== undefined) return
    this.#events.record({
      object: node,
      type: by === 'veto' ? 'Normal' : 'Warning',
      reason: 'NodeRepairBlocked',
      message: because.charAt(0).toUpperCase() + because.slice(1),
      dedupe: [(ofPool ? pool?.metadata.uid : undefined) ?? uid, by],
      dedupeTtlMs: blockedTtlMs,
    })
  }

  /** Whether the failure began after the last one that was reported was over. */
  #isNew(scope: string, untilMs: number): boolean {
    const isNew = (this.#reported.get(scope) ?? 0) <= this.#clock.now()
    this.#reported.set(scope, untilMs)
    if (isNew) this.#metrics.nodeRepairBrakes.inc({ zone: scope })
    return isNew
  }

  began(node: Node, action: 'force' | 'reboot' | 'replace'): void {
    this.#metrics.nodeRepairs.inc({ nodepool: node.metadata.labels?.[labels.nodePool] ?? '', action })
    if (action !== 'reboot') return
    const message = 'The instance is rebooted, as the node is unhealthy; it is replaced if that does not help'
    this.#events.record({ object: node, type: 'Normal', reason: 'NodeRebooted', message })
  }

  rebootFailed(node: Node, because: string): void {
    const message = `The instance could not be rebooted: ${because}; it is replaced if the node stays unhealthy`
    this.#events.record({ object: node, type: 'Warning', reason: 'NodeRebootFailed', message })
  }

  unreadableVeto(node: Node): void {
    const veto = readVeto(node, this.#clock.now())
    if (veto?.kind !== 'unreadable') return
    this.#events.record({
      object: node,
      type: 'Warning',
      reason: 'AnnotationIgnored',
      message: `metadata.annotations["${doNotRepairAnnotation}"]: "${veto.text}" cannot be read and is ignored; use "true" or a time such as "2026-11-27T14:00:00Z"`,
      dedupe: [node.metadata.uid ?? node.metadata.name, doNotRepairAnnotation, veto.text],
      dedupeTtlMs: annotationTtlMs,
    })
  }
}
