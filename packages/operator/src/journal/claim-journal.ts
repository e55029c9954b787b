import { counted, labels, type NodeClaim, type Pod, type PricePerHour } from '@tenon/api'
import type { ClusterState } from '../state/cluster-state.ts'
import { type JournalNote, type JournalPrices, podsNoted, upperCamel } from './entry.ts'
import type { Journal } from './journal.ts'

export interface CreatedClaim {
  readonly name: string
  readonly nodePool: string
  /** As in metric `karpenter_nodeclaims_created_total`. */
  readonly reason: string
  readonly pods?: readonly Pod[]
  readonly pricePerHour?: PricePerHour
  readonly decision?: string
}

/** Adds the steps of NodeClaims to the journal. */
export class ClaimJournal {
  readonly #journal: Journal
  readonly #state: ClusterState

  constructor(journal: Journal, state: ClusterState) {
    this.#journal = journal
    this.#state = state
  }

  created({ name, nodePool, reason, pods = [], pricePerHour, decision }: CreatedClaim): void {
    const forPods = pods.length === 0 ? '' : ` for ${counted(pods.length, 'pod')}`
    this.#journal.note({
      kind: 'launch',
      reason: upperCamel(reason),
      message: `NodeClaim ${name} was created${forPods}`,
      nodePool,
      nodeClaims: [name],
      ...(pods.length > 0 && { pods: podsNoted(pods) }),
      pricePerHour: { before: 0, ...(pricePerHour !== undefined && { after: pricePerHour }) },
      ...(decision !== undefined && { decision }),
    })
  }

  /** @param claim with the labels of its instance. */
  launched(claim: NodeClaim): void {
    const tags = claim.metadata.labels ?? {}
    const what = [labels.instanceType, labels.zone, labels.capacityType].map((key) => tags[key] ?? 'unknown')
    this.#note(claim, {
      kind: 'launched',
      reason: 'Launched',
      message: `An instance was launched: ${what.join(', ')}`,
      pricePerHour: this.#pricesAfter(claim),
    })
  }

  launchFailed(claim: NodeClaim, reason: string, message: string): void {
    this.#note(claim, { kind: 'failure', reason, message: `No instance was launched: ${message}` })
  }

  registered(claim: NodeClaim, node: string): void {
    const message = `Node ${node} joined and was registered`
    const pricePerHour = this.#pricesAfter(claim)
    this.#note(claim, { kind: 'registered', reason: 'Registered', message, nodes: [node], pricePerHour })
  }

  initialized(claim: NodeClaim, node: string): void {
    const message = `Node ${node} can run pods`
    const pricePerHour = this.#pricesAfter(claim)
    this.#note(claim, { kind: 'initialized', reason: 'Initialized', message, nodes: [node], pricePerHour })
  }

  /**
   * The claim was deleted; its node drains.
   * @param reason as in metric `karpenter_nodeclaims_disrupted_total`.
   * @param pods number of pods that move because of it.
   */
  deleting(claim: NodeClaim, reason: string, pods: number): void {
    this.#note(claim, {
      kind: 'removal',
      reason: upperCamel(reason),
      message: `NodeClaim ${claim.metadata.name} was deleted`,
      pods: { count: pods, names: [] },
      pricePerHour: this.#pricesBefore(claim),
    })
  }

  gone(claim: NodeClaim): void {
    const message = `NodeClaim ${claim.metadata.name} and its instance are gone`
    this.#note(claim, {
      kind: 'removed',
      reason: 'Terminated',
      message,
      pricePerHour: this.#pricesBefore(claim),
    })
  }

  #pricesBefore(claim: NodeClaim): JournalPrices {
    const before = this.#state.poolCosts.priceOf(claim)
    return { ...(before !== undefined && { before }), after: 0 }
  }

  #pricesAfter(claim: NodeClaim): JournalPrices {
    const after = this.#state.poolCosts.priceOf(claim)
    return after === undefined ? {} : { after }
  }

  #note({ metadata, status }: NodeClaim, note: JournalNote): void {
    const nodePool = metadata.labels?.[labels.nodePool] ?? ''
    const node = status?.nodeName ?? ''
    this.#journal.note({
      ...(nodePool !== '' && { nodePool }),
      nodeClaims: [metadata.name],
      ...(node !== '' && { nodes: [node] }),
      ...note,
    })
  }
}
