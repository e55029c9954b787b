import { isKnownEphemeralTaint, kinds, labels, type Node, type Pod, sameTaint } from '@tenon/api'
import { isKubeError } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { Autoscaler } from './autoscaler.ts'
import { heldTaint } from './pools.ts'

const pollMs = 50
/** How long nominations must have stood: an attempt that was under way when they came clears them again. */
const standingMs = 250
/** A nomination that did not stand is set again after this long, which leaves the watch time to tell. */
const repeatMs = 200
/** After this long nodes are opened with what nominations there are. */
const patienceMs = 6000

/**
 * Opens the nodes of a round to pods, which a start-up taint keeps away until then. `planned` first
 * nominates every pod for the node it is planned on and opens all nodes at once, so that the outcome
 * tells whether the plan can be carried out; `free` opens each node as it registers and leaves the
 * scheduler to its scores.
 */
export class Steering {
  readonly #autoscaler: Autoscaler
  readonly #clock: Clock
  readonly #mode: 'planned' | 'free'
  #waitingSince: number | undefined
  #standingSince: number | undefined
  /** When each pod was nominated last, by UID. */
  readonly #nominatedAt = new Map<string, number>()

  constructor(autoscaler: Autoscaler, clock: Clock, mode: 'planned' | 'free') {
    this.#autoscaler = autoscaler
    this.#clock = clock
    this.#mode = mode
  }

  /** Runs until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#look()
      await this.#clock.sleep(pollMs)
    }
  }

  async #look(): Promise<void> {
    const { nodes, nodeClaims } = this.#autoscaler.operator.caches
    const held = nodes.list().filter(isHeld)
    // Also on nodes that are open: a pod that is tried before the pods it wants to be near loses its nomination.
    const fallen = this.#mode === 'planned' ? await this.#nominate() : 0
    if (held.length === 0) {
      this.#waitingSince = undefined
      this.#standingSince = undefined
      return
    }
    const now = this.#clock.monotonic()
    this.#waitingSince ??= now
    const isPatient = now - this.#waitingSince < patienceMs
    if (this.#mode === 'planned' && isPatient) {
      const coming = nodeClaims.list().length - nodes.list().filter(isComplete).length
      if (coming > 0 || fallen > 0) this.#standingSince = undefined
      else this.#standingSince ??= now
      if (this.#standingSince === undefined || now - this.#standingSince < standingMs) return
    }
    await Promise.all(held.map((node) => this.#open(node)))
  }

  /** Sets what does not stand, and tells how many that were. */
  async #nominate(): Promise<number> {
    const { pods, nodes, nodeClaims } = this.#autoscaler.operator.caches
    const names = new Set(nodes.list().map(({ metadata }) => metadata.name))
    const nodeOf = new Map(nodeClaims.list().map(({ metadata, status }) => [metadata.name, status?.nodeName]))
    const { plan } = this.#autoscaler.decisions
    const target = (pod: Pod) => nodeOf.get(plan.get(pod.metadata.uid ?? '') ?? '')
    const fallen = pods.list().filter((pod) => {
      const node = target(pod)
      const isUnbound = (pod.spec.nodeName ?? '') === ''
      return isUnbound && node !== undefined && names.has(node) && pod.status?.nominatedNodeName !== node
    })
    const now = this.#clock.monotonic()
    const due = fallen.filter(({ metadata: { uid = '' } }) => {
      return now - (this.#nominatedAt.get(uid) ?? Number.NEGATIVE_INFINITY) >= repeatMs
    })
    await Promise.all(
      due.map(async (pod) => {
        const { name, namespace = '', uid = '' } = pod.metadata
        this.#nominatedAt.set(uid, now)
        const patch = { status: { nominatedNodeName: target(pod) } }
        const { client } = this.#autoscaler
        await ignoring(client.patch(kinds.pod, { name, namespace }, patch, { subresource: 'status' }))
      }),
    )
    return fallen.length
  }

  /** All nodes of a round must open within moments, so other writes to them must not get in the way. */
  async #open({ metadata, spec }: Node): Promise<void> {
    const index = (spec?.taints ?? []).findIndex((taint) => sameTaint(taint, heldTaint))
    const path = `/spec/taints/${index}`
    const patch = [
      { op: 'test', path: `${path}/key`, value: heldTaint.key },
      { op: 'remove', path },
    ]
    const { client } = this.#autoscaler
    await ignoring(client.patch(kinds.node, { name: metadata.name }, patch, { kind: 'json' }))
  }
}

const isHeld = ({ spec }: Node) => (spec?.taints ?? []).some((taint) => sameTaint(taint, heldTaint))
/** Registered, Ready, and kept from pods by the start-up taint alone. */
const isComplete = ({ metadata, spec }: Node) =>
  metadata.labels?.[labels.registered] === 'true' &&
  !(spec?.taints ?? []).some((taint) => isKnownEphemeralTaint(taint))

/** The object is gone, or has other taints by now; the next look tells. */
async function ignoring(work: Promise<unknown>): Promise<void> {
  await work.catch((error: unknown) => {
    if (!isKubeError(error, 'notFound', 'conflict', 'invalid')) throw error
  })
}
