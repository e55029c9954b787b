/** Launches nodes for pods that cannot be scheduled (scheduling.md 3, 12). */
import {
  disruptedTaint,
  karpenterKinds,
  type NodeClaim,
  type Pod,
  parseResources,
  sameTaint,
} from '@tenon/api'
import { type NewClaim, renderPodReason, type SchedulingResult, schedule } from '@tenon/engine'
import { nodeClaimFor } from '../act/create-claim.ts'
import type { OperatorContext } from '../context.ts'
import { Batcher } from '../decide/batcher.ts'
import { gatherSchedulingInput, poolUsage, unreadyPools } from '../decide/scheduling-input.ts'
import type { StateNode } from '../state/cluster-state.ts'
import { isProvisionable, keyOf } from '../state/pods.ts'

const parallelCreates = 20
const unsyncedPollMs = 250

/** Runs until `signal` aborts; errors of a pass are logged and the pass is tried again. */
export class Provisioner {
  readonly #context: OperatorContext
  readonly #batcher: Batcher

  constructor(context: OperatorContext) {
    this.#context = context
    const { clock, settings } = context
    this.#batcher = new Batcher(clock, settings.batchMaxMs, settings.batchIdleMs)
    context.caches.pods.onChange((change) => {
      if (change.kind !== 'deleted' && isProvisionable(change.object))
        this.#batcher.trigger(change.object.metadata.uid ?? '')
    })
    context.caches.nodes.onChange((change) => {
      const taints = change.object.spec?.taints ?? []
      if (change.kind !== 'deleted' && taints.some((taint) => sameTaint(taint, disruptedTaint))) {
        this.#batcher.trigger(change.object.metadata.uid ?? '')
      }
    })
    context.caches.nodePools.onChange(() => {
      if (this.#pending()) this.#batcher.trigger('nodepools')
    })
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, settings, logger } = this.#context
    let failures = 0
    while (!signal.aborted) {
      try {
        await this.#batcher.wait(signal)
        await this.#synced(signal)
        await this.#pass(signal)
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        failures++
        logger.error('Reconciler error', { controller: 'provisioner', error })
        await clock.sleep(Math.min(10_000, 2 ** failures * 100), signal).catch(() => undefined)
        this.#batcher.trigger('retry')
      }
      if (this.#pending())
        clock.after(settings.pendingRetryMs, () => {
          if (this.#pending()) this.#batcher.trigger('pending')
        })
    }
  }

  #pending(): boolean {
    return this.#context.caches.pods.list().some(isProvisionable)
  }

  /** Waits until every created claim is launched or gone: before that, capacity on its way is unknown. */
  async #synced(signal: AbortSignal): Promise<void> {
    const { clock, state, client, metrics } = this.#context
    while (state.unlaunched().length > 0) {
      metrics.stateSynced.set(0)
      await clock.sleep(unsyncedPollMs, signal)
      for (const seed of state.seeded) {
        const createdMs = Date.parse(seed.metadata.creationTimestamp ?? '')
        if (clock.now() - createdMs < 15_000) continue
        const current = await client.get(karpenterKinds.nodeClaim, { name: seed.metadata.name }, { signal })
        if (current === undefined) state.dropSeed(seed.metadata.name)
      }
    }
    metrics.stateSynced.set(1)
  }

  async #pass(signal: AbortSignal): Promise<void> {
    const { clock, logger, metrics } = this.#context
    const input = await gatherSchedulingInput(this.#context, signal)
    if (input.pods.length === 0) {
      metrics.unschedulablePods.set({ controller: 'provisioner' }, 0)
      return
    }
    const start = clock.monotonic()
    const result = schedule(input)
    const durationMs = clock.monotonic() - start
    metrics.schedulingDuration.observe({ controller: 'provisioner' }, durationMs / 1000)
    metrics.unschedulablePods.set({ controller: 'provisioner' }, result.failures.length)
    logger.info('found provisionable pod(s)', {
      Pods: podList(input.pods),
      duration: `${durationMs.toFixed(1)}ms`,
    })
    this.#nominate(result, input.stateNodes)
    this.#report(result)
    if (input.pools.length === 0)
      logger.info('no nodepool can launch', { waiting: unreadyPools(this.#context) })
    if (result.claims.length > 0) await this.#create(result.claims, signal)
  }

  #nominate(result: SchedulingResult, nodes: ReadonlyMap<string, StateNode>): void {
    for (const { pod, node } of result.placements) {
      const target = nodes.get(node)
      if (target === undefined) continue
      this.#context.state.nominate(target.providerID, this.#nominationMs)
      if ((pod.spec.nodeName ?? '') === '') this.#nominated(pod, target.claim, target.node?.metadata.name)
    }
  }

  get #nominationMs(): number {
    return Math.max(2 * this.#context.settings.batchMaxMs, 10_000)
  }

  #nominated(pod: Pod, claim: NodeClaim | undefined, node: string | undefined): void {
    const targets = [
      ...(claim === undefined ? [] : [`nodeclaim/${claim.metadata.name}`]),
      ...(node === undefined ? [] : [`node/${node}`]),
    ]
    this.#context.events.record({
      object: pod,
      type: 'Normal',
      reason: 'Nominated',
      message: `Pod should schedule on: ${targets.join(', ')}`,
      dedupe: [pod.metadata.uid ?? ''],
    })
  }

  #report(result: SchedulingResult): void {
    const { events, caches, logger } = this.#context
    for (const { pod, reason } of result.failures) {
      const message = `No node can be launched for this pod: ${renderPodReason(reason)}`
      logger.debug('could not schedule pod', {
        Pod: { name: pod.metadata.name, namespace: pod.metadata.namespace },
        reason: message,
      })
      events.record({
        object: pod,
        type: 'Warning',
        reason: 'FailedScheduling',
        message,
        dedupe: [pod.metadata.uid ?? ''],
        dedupeTtlMs: 5 * 60_000,
      })
    }
    for (const { nodePool: name } of result.poolsWithoutTypes) {
      const pool = caches.nodePools.get({ name })
      if (pool === undefined) continue
      events.record({
        object: pool,
        type: 'Warning',
        reason: 'NoCompatibleInstanceTypes',
        message: 'No available instance type meets the requirements of this NodePool',
        dedupe: [pool.metadata.uid ?? ''],
        dedupeTtlMs: 60_000,
      })
    }
  }

  async #create(claims: readonly NewClaim[], signal: AbortSignal): Promise<void> {
    const { logger } = this.#context
    logger.info('computed new nodeclaim(s) to fit pod(s)', {
      nodeclaims: claims.length,
      pods: claims.reduce((count, claim) => count + claim.pods.length, 0),
    })
    const queue = [...claims]
    const failures: unknown[] = []
    const worker = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        try {
          await this.#createOne(next, signal)
        } catch (error) {
          failures.push(error)
        }
      }
    }
    await Promise.all(Array.from({ length: Math.min(parallelCreates, claims.length) }, worker))
    if (failures.length > 0)
      throw new AggregateError(
        failures,
        `creating ${failures.length} NodeClaim(s): ${(failures[0] as Error).message}`,
      )
  }

  async #createOne(claim: NewClaim, signal: AbortSignal): Promise<void> {
    const { client, caches, state, metrics, logger } = this.#context
    const pool = caches.nodePools.get({ name: claim.nodePool })
    if (pool === undefined) throw new Error(`NodePool ${claim.nodePool} is gone`)
    const limits = parseResources(pool.spec.limits)
    const usage = poolUsage(claim.nodePool, state.stateNodes())
    const exceeded = Object.keys(limits).find((name) => (usage[name] ?? 0) > (limits[name] as number))
    if (exceeded !== undefined)
      throw new Error(`NodePool ${claim.nodePool} exceeds its limit for ${exceeded}`)
    const created = await client.create(karpenterKinds.nodeClaim, nodeClaimFor(claim, pool), { signal })
    state.seed(created)
    metrics.nodeClaimsCreated.inc({
      reason: 'provisioned',
      nodepool: claim.nodePool,
      min_values_relaxed: String(claim.minValuesRelaxed),
    })
    logger.info('created nodeclaim', {
      NodePool: { name: claim.nodePool },
      NodeClaim: { name: created.metadata.name },
      requests: created.spec.resources?.requests,
      'instance-types': shortened(claim.instanceTypes),
      Pods: podList(claim.pods),
    })
    for (const pod of claim.pods)
      if ((pod.spec.nodeName ?? '') === '') this.#nominated(pod, created, undefined)
  }
}

function podList(pods: readonly Pod[]): string {
  return shortened(pods.map((pod) => keyOf(pod.metadata)))
}

function shortened(names: readonly string[]): string {
  const rest = names.length - 5
  return `${names.slice(0, 5).join(', ')}${rest > 0 ? ` and ${rest} other(s)` : ''}`
}
