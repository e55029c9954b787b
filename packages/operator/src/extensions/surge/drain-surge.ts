/** Restarts Deployments before their pods are evicted from a node (wanted.md 3). */
import { controllerOf, type Deployment, kinds, type KubeObject, type Node, type Pod } from '@tenon/api'
import { type EventRecorder, type KubeClient, KubeError } from '@tenon/kube'
import { type Clock, type Logger, rfc3339 } from '@tenon/runtime'
import type { EvictionHold } from '../../node/termination/controller.ts'
import type { EvictionQueue } from '../../node/termination/eviction-queue.ts'
import { type Caches, indexes } from '../../state/caches.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import { budgetsOf, doNotDisrupt, isActive, isEvictable, isPodReady, keyOf } from '../../state/pods/pods.ts'
import {
  hasFailed,
  restartedAtAnnotation,
  surgeAnnotation,
  surgedFor,
  surgedForAnnotation,
  surgeStep,
  type SurgeStep,
  whyNoSurge,
} from '../../state/pods/surging-pods.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'get' | 'patch'>
  readonly caches: Pick<Caches, 'nodes' | 'pods'>
  readonly state: Pick<ClusterState, 'podsOnNodes' | 'surgingPods' | 'windows'>
  readonly evictions: Pick<EvictionQueue, 'isPaused'>
  readonly events: EventRecorder
  readonly clock: Clock
  readonly logger: Logger
}

/** Pods of one Deployment that a drain would evict now. */
interface Group {
  readonly deployment: Deployment
  readonly pods: [Pod, ...Pod[]]
}

/** Since the drain began, a restart that the API server cannot carry out is tried again for so long. */
const patienceMs = 5 * 60_000
/** One event about a Deployment and a drain in this time. */
const eventMs = 60 * 60_000
/** Drains that a Deployment remembers. */
const mostRemembered = 50

export class DrainSurge implements EvictionHold {
  readonly #deps: Dependencies
  /** UIDs of Deployments restarted and StatefulSets looked up, by UID of the Node that is drained. */
  readonly #handled = new Map<string, Set<string>>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  async evictable(node: Node, pods: readonly Pod[], signal: AbortSignal): Promise<readonly Pod[]> {
    const { clock, evictions, state } = this.#deps
    const { surgingPods } = state
    const evictable: Pod[] = []
    const groups = new Map<string, Group>()
    for (const pod of pods) {
      // One that is not ready serves nobody.
      const deployment = isPodReady(pod) && isActive(pod) ? surgingPods.deploymentOf(pod) : undefined
      if (deployment === undefined) {
        evictable.push(pod)
        continue
      }
      // In the eviction queue it would be evicted as soon as do-not-disrupt or the pause ends, not replaced first.
      if (!isEvictable(pod, clock.now(), state.windows) || evictions.isPaused(pod)) continue
      const key = keyOf(deployment.metadata)
      const group = groups.get(key)
      if (group === undefined) groups.set(key, { deployment, pods: [pod] })
      else group.pods.push(pod)
    }
    for (const group of groups.values()) evictable.push(...(await this.#released(node, group, signal)))
    await this.#explainStatefulSets(node, evictable, signal)
    return evictable
  }

  /** @returns pods to evict as usual. */
  async #released(node: Node, { deployment, pods }: Group, signal: AbortSignal): Promise<readonly Pod[]> {
    const { podsOnNodes, surgingPods } = this.#deps.state
    if (hasFailed(deployment)) {
      this.#tell(deployment, node, 'SurgeFailed', 'its rollout did not progress within its deadline')
      return pods
    }
    // That was told when it was refused.
    if (surgingPods.isRefused(deployment)) return pods
    const why =
      whyNoSurge(deployment, budgetsOf(pods[0], podsOnNodes.budgets())) ??
      (surgingPods.sharesVolume(pods[0]) ? 'has a volume that only one node can attach' : undefined)
    if (why !== undefined) {
      this.#tell(deployment, node, 'SurgeSkipped', `it ${why}`)
      return pods
    }
    const { uid = '' } = node.metadata
    const steps = pods.map((pod) => [pod, surgeStep(pod, deployment, uid)] as const)
    const current = steps.filter(([, step]) => step === 'restart').map(([pod]) => pod)
    const released = steps.filter(([, step]) => step === 'evict').map(([pod]) => pod)
    const [first] = current
    const step = first === undefined ? 'wait' : await this.#restart(node, deployment, first, signal)
    return step === 'evict' ? [...released, ...current] : released
  }

  /** Restarts the Deployment, unless the API server shows that it was restarted since the cache was filled. */
  async #restart(node: Node, cached: Deployment, pod: Pod, signal: AbortSignal): Promise<SurgeStep> {
    const { client, events, logger, state } = this.#deps
    const { name, namespace = '', uid } = cached.metadata
    try {
      const deployment = await client.get(kinds.deployment, { namespace, name }, { signal })
      if (deployment === undefined || deployment.metadata.uid !== uid) return 'evict'
      const why = whyNoSurge(deployment, budgetsOf(pod, state.podsOnNodes.budgets()))
      if (why !== undefined || hasFailed(deployment) || !state.surgingPods.isAsked(deployment)) return 'evict'
      const { uid: drain = '' } = node.metadata
      const step = surgeStep(pod, deployment, drain)
      if (step !== 'restart') return step
      // Somebody who replaces the object takes the annotations away, each time anew.
      if (this.#handled.get(drain)?.has(uid ?? '') === true) return 'evict'
      const held = this.#heldWith(pod)
      if (held !== undefined) {
        const { by } = held
        this.#tell(
          cached,
          node,
          'SurgeSkipped',
          `a rollout would end its pod ${held.pod}, which ${by} protects`,
        )
        return 'evict'
      }
      if (!(await this.#owns(deployment, pod, signal))) return 'evict'
      const { resourceVersion = '' } = deployment.metadata
      await client.patch(kinds.deployment, { namespace, name }, this.#patchOf(deployment, node), {
        resourceVersion,
        signal,
      })
      this.#handledIn(drain).add(uid ?? '')
    } catch (error) {
      if (!(error instanceof KubeError)) throw error
      return this.#afterFailure(node, cached, error)
    }
    logger.info('restarted a Deployment before its pods are evicted', {
      Deployment: { namespace, name },
      Node: { name: node.metadata.name },
    })
    events.record({
      object: cached,
      type: 'Normal',
      reason: 'SurgeStarted',
      message: `Restarted, as Node ${node.metadata.name} is drained: a rollout replaces its pods there before any is evicted`,
      dedupe: [uid ?? name, node.metadata.uid ?? ''],
    })
    return 'wait'
  }

  #afterFailure(node: Node, deployment: Deployment, error: KubeError): SurgeStep {
    if (error.kind === 'conflict') return 'wait'
    if (error.kind === 'notFound') return 'evict'
    // With 200, what came was no answer to the request.
    const isPassing = error.status < 400 || error.status === 429 || error.status >= 500
    const sinceMs = Date.parse(node.metadata.deletionTimestamp ?? '')
    if (isPassing && this.#deps.clock.now() - sinceMs < patienceMs) return 'wait'
    this.#tell(
      deployment,
      node,
      'SurgeFailed',
      `it could not be restarted: ${error.serverMessage ?? error.message}`,
    )
    this.#deps.state.surgingPods.refuse(deployment)
    return 'evict'
  }

  #handledIn(drain: string): Set<string> {
    const known = this.#handled.get(drain)
    if (known !== undefined) return known
    const nodes = new Set(this.#deps.caches.nodes.list().map(({ metadata }) => metadata.uid))
    for (const uid of this.#handled.keys()) if (!nodes.has(uid)) this.#handled.delete(uid)
    const none = new Set<string>()
    this.#handled.set(drain, none)
    return none
  }

  /** A pod that a rollout would replace, too, and that must not be disrupted now. */
  #heldWith(pod: Pod): { readonly pod: string; readonly by: string } | undefined {
    const { caches, clock, state } = this.#deps
    for (const each of caches.pods.byIndex(indexes.byOwner, controllerOf(pod)?.uid ?? '')) {
      const protection = doNotDisrupt(each, clock.now(), state.windows)
      if (isActive(each) && protection.kind === 'active')
        return { pod: keyOf(each.metadata), by: protection.by }
    }
    return undefined
  }

  /** Whether the pod's ReplicaSet is one of the Deployment, and not only named like one. */
  async #owns({ metadata }: Deployment, pod: Pod, signal: AbortSignal): Promise<boolean> {
    const { name = '', uid } = controllerOf(pod) ?? {}
    const set = await this.#deps.client.get(
      kinds.replicaSet,
      { namespace: metadata.namespace ?? '', name },
      { signal },
    )
    return set?.metadata.uid === uid && set !== undefined && controllerOf(set)?.uid === metadata.uid
  }

  #patchOf(deployment: Deployment, node: Node): object {
    const { caches, clock } = this.#deps
    const before = deployment.spec.template.metadata?.annotations?.[restartedAtAnnotation]
    const now = rfc3339(clock.now())
    // Of two restarts within a second, the second one would change nothing.
    const restartedAt = now === before ? rfc3339(clock.now() + 1000) : now
    const leaving = new Set(
      caches.nodes
        .list()
        .flatMap(({ metadata }) => (metadata.deletionTimestamp && metadata.uid ? [metadata.uid] : [])),
    )
    const remembered = surgedFor(deployment).filter((uid) => leaving.has(uid) && uid !== node.metadata.uid)
    const surged = [...remembered, node.metadata.uid ?? ''].slice(-mostRemembered).join(',')
    return {
      metadata: { annotations: { [surgedForAnnotation]: surged } },
      spec: { template: { metadata: { annotations: { [restartedAtAnnotation]: restartedAt } } } },
    }
  }

  /** @param why a clause. */
  #tell(object: KubeObject, node: Node, reason: 'SurgeFailed' | 'SurgeSkipped', why: string): void {
    const { name, uid = name } = object.metadata
    this.#deps.events.record({
      object,
      type: reason === 'SurgeFailed' ? 'Warning' : 'Normal',
      reason,
      message: `Its pods on Node ${node.metadata.name} are evicted, not replaced first (${surgeAnnotation}): ${why}`,
      dedupe: [uid, node.metadata.uid ?? ''],
      dedupeTtlMs: eventMs,
    })
  }

  /** StatefulSets cannot surge; those that are asked to are told. */
  async #explainStatefulSets(node: Node, pods: readonly Pod[], signal: AbortSignal): Promise<void> {
    const { client, logger, state } = this.#deps
    const { uid: drain = '' } = node.metadata
    for (const pod of pods) {
      const owner = controllerOf(pod)
      if (owner?.kind !== 'StatefulSet' || !isActive(pod)) continue
      const handled = this.#handledIn(drain)
      if (handled.has(owner.uid)) continue
      handled.add(owner.uid)
      const key = { namespace: pod.metadata.namespace ?? '', name: owner.name }
      try {
        const set = await client.get(kinds.statefulSet, key, { signal })
        if (set !== undefined && state.surgingPods.isAsked(set))
          this.#tell(set, node, 'SurgeSkipped', 'only Deployments can run more pods than they have replicas')
      } catch (error) {
        if (!(error instanceof KubeError)) throw error
        logger.warn('cannot read a StatefulSet', { StatefulSet: key, error })
      }
    }
  }
}
