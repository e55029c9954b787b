/** `brake.automatic`: pauses voluntary disruption when something goes wrong (ask.md 8). */
import {
  type ConfigMap,
  isConditionTrue,
  karpenterKinds,
  kinds,
  type Node,
  type NodePool,
  ownValue,
} from '@tenon/api'
import {
  type Cache,
  done,
  type EventRecorder,
  isKubeError,
  type KubeClient,
  type ReconcileResult,
} from '@tenon/kube'
import { type Clock, Listeners, rfc3339 } from '@tenon/runtime'
import type { Caches } from '../../state/caches.ts'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { ReplacementObserver } from '../../disruption/commands/replacements.ts'
import type { Settings } from '../../settings.ts'
import {
  brakeKeys,
  brakeName,
  pauseAnnotations,
  pauseText,
  type PauseValue,
  readPause,
} from '../../state/pause.ts'
import { isDisrupted, isNodeReady } from '../../state/nodes/state-node.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'create' | 'patch'>
  readonly caches: Pick<Caches, 'brakeConfigMaps' | 'nodePools' | 'nodes'>
  readonly state: Pick<ClusterState, 'brake' | 'claimOf'>
  readonly events: EventRecorder
  readonly clock: Clock
  readonly settings: Pick<Settings, 'brakeNamespace'>
}

const pauseMs = 30 * 60_000
/** Consecutive failed replacements of one NodePool that trigger a pause. */
const mostFailures = 3
/** How many nodes a reason names. */
const namedNodes = 5

export class AutoBrake implements ControllerSpec, ReplacementObserver {
  readonly name = 'brake.automatic'
  readonly concurrency = { least: 1, most: 1 }
  readonly #deps: Dependencies
  /** Failed replacements since the last success, by NodePool. */
  readonly #failures = new Map<string, number>()
  /** Pauses that are not written yet, by NodePool; the empty name is the cluster. */
  readonly #unwritten = new Map<string, PauseValue>()
  readonly #due = new Listeners<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, clock, state } = this.#deps
    this.#due.add(enqueue)
    const lostNodes = new LostNodes(caches.nodes, state, clock)
    lostNodes.follow((loss) => {
      this.#pause('', lossText(loss))
    }, this.#lastMs())
  }

  replacementFailed(pool: string): void {
    const failures = (this.#failures.get(pool) ?? 0) + 1
    this.#failures.set(pool, failures)
    if (failures < mostFailures) return
    this.#failures.delete(pool)
    this.#pause(pool, `${mostFailures} replacements in a row did not become nodes`)
  }

  replacementSucceeded(pool: string): void {
    this.#failures.delete(pool)
  }

  async reconcile(pool: string): Promise<ReconcileResult> {
    const value = this.#unwritten.get(pool)
    if (value === undefined) return done
    if (await this.#write(pool, value)) {
      this.#unwritten.delete(pool)
      this.#deps.state.brake.written(pool)
    }
    return done
  }

  #pause(pool: string, reason: string): void {
    const { clock, state } = this.#deps
    const now = clock.now()
    const value: PauseValue = { untilMs: now + pauseMs, sinceMs: now, reason, includes: [] }
    state.brake.begin(pool, value)
    this.#unwritten.set(pool, value)
    this.#recordEvent(pool, reason, now + pauseMs)
    this.#due.notify(pool)
  }

  /** @returns false when there is no place to write it: it holds in this process alone. */
  async #write(pool: string, value: PauseValue): Promise<boolean> {
    const { client, settings } = this.#deps
    const text = pauseText(value)
    try {
      if (pool !== '') {
        const metadata = { annotations: { [pauseAnnotations.automatic]: text } }
        await client.patch(karpenterKinds.nodePool, { name: pool }, { metadata })
        return true
      }
      if (settings.brakeNamespace === undefined) return false
      await this.#writeConfigMap(settings.brakeNamespace, text)
      return true
    } catch (error) {
      // The NodePool is gone, or there is no right to write the ConfigMap.
      if (isKubeError(error, 'notFound', 'forbidden')) return false
      throw error
    }
  }

  async #writeConfigMap(namespace: string, text: string): Promise<void> {
    const { client } = this.#deps
    const data = { [brakeKeys.automatic]: text }
    try {
      await client.patch(kinds.configMap, { namespace, name: brakeName }, { data })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
      const metadata = { namespace, name: brakeName }
      await client.create<ConfigMap>(kinds.configMap, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data })
    }
  }

  #recordEvent(pool: string, reason: string, untilMs: number): void {
    const { caches, events, settings } = this.#deps
    const end =
      pool === ''
        ? `"tenon resume", or deleting key ${brakeKeys.automatic} of ConfigMap ${settings.brakeNamespace ?? ''}/${brakeName}, ends it earlier`
        : `"tenon resume nodepool/${pool}", or removing annotation ${pauseAnnotations.automatic}, ends it earlier`
    const objects: readonly (NodePool | undefined)[] =
      pool === '' ? caches.nodePools.list() : [caches.nodePools.get({ name: pool })]
    for (const object of objects)
      if (object !== undefined)
        events.record({
          object,
          type: 'Warning',
          reason: 'AutoBrake',
          message: `Voluntary disruption is paused until ${rfc3339(untilMs)}: ${reason}; ${end}`,
          dedupe: [object.metadata.uid ?? object.metadata.name, String(untilMs)],
        })
  }

  /** When the last automatic pause of the cluster began; losses up to then have been reported. */
  #lastMs(): number {
    const texts = (this.#deps.caches.brakeConfigMaps?.list() ?? []).map(({ data }) =>
      ownValue(data, brakeKeys.automatic),
    )
    const reading = readPause(texts[0] ?? 'false')
    return reading.kind === 'none' ? Number.NEGATIVE_INFINITY : (reading.value.sinceMs ?? 0)
  }
}

function lossText({ lost, of }: Loss): string {
  const rest = lost.length - namedNodes
  const names = lost.slice(0, namedNodes).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
  return `${lost.length} of ${of} Ready nodes were lost within 5 min (${names})`
}

/** How long a node must be NotReady to count: one whose removal is not in the cache yet looks the same. */
const confirmMs = 30_000
/** Losses further apart than this are separate events. */
const windowMs = 5 * 60_000
/** In smaller clusters single nodes are a large share. */
const leastNodes = 10
const share = 0.2

/** Nodes that were lost together. */
interface Loss {
  readonly lost: readonly string[]
  /** Number of nodes that were Ready before. */
  readonly of: number
}

/**
 * A node is lost when it stops being Ready although nobody has begun to remove it: neither the Node nor its NodeClaim is
 * being deleted, and the Node is not cordoned. A node that becomes Ready again is no longer lost.
 */
class LostNodes {
  readonly #nodes: Pick<Cache<Node>, 'get' | 'list' | 'onChange'>
  readonly #state: Pick<ClusterState, 'claimOf'>
  readonly #clock: Pick<Clock, 'after' | 'now' | 'monotonic'>
  /** When each Node was lost, by name; monotonic milliseconds. */
  readonly #lost = new Map<string, number>()

  constructor(
    nodes: Pick<Cache<Node>, 'get' | 'list' | 'onChange'>,
    state: Pick<ClusterState, 'claimOf'>,
    clock: Pick<Clock, 'after' | 'now' | 'monotonic'>,
  ) {
    this.#nodes = nodes
    this.#state = state
    this.#clock = clock
  }

  /**
   * Call once.
   * @param onLoss called once for each loss that is large enough.
   * @param notedUntilMs an earlier process has reported losses up to then; Unix milliseconds.
   */
  follow(onLoss: (loss: Loss) => void, notedUntilMs: number): void {
    this.#restore(notedUntilMs)
    this.#nodes.onChange((change) => {
      if (change.kind === 'deleted') return
      const { name } = change.object.metadata
      if (isNodeReady(change.object)) this.#lost.delete(name)
      if (change.kind !== 'updated' || !isNodeReady(change.old) || isNodeReady(change.object)) return
      if (this.#isGoing(change.object)) return
      const atMs = this.#clock.monotonic()
      this.#clock.after(confirmMs, () => {
        if (!this.#isStillLost(name)) return
        this.#lost.set(name, atMs)
        this.#weigh(onLoss)
      })
    })
  }

  #isStillLost(name: string): boolean {
    const node = this.#nodes.get({ name })
    return node !== undefined && !isNodeReady(node) && !this.#isGoing(node)
  }

  #weigh(onLoss: (loss: Loss) => void): void {
    const now = this.#clock.monotonic()
    for (const [name, atMs] of this.#lost) if (now - atMs > windowMs) this.#lost.delete(name)
    const ready = this.#nodes.list().filter(isNodeReady).length
    const of = ready + this.#lost.size
    if (of < leastNodes || this.#lost.size <= share * of) return
    const lost = [...this.#lost.keys()].toSorted()
    this.#lost.clear()
    onLoss({ lost, of })
  }

  /** Adds nodes that were lost shortly before this process started. */
  #restore(notedUntilMs: number): void {
    const now = this.#clock.now()
    for (const node of this.#nodes.list()) {
      if (isNodeReady(node) || this.#isGoing(node) || !this.#wasReady(node, now)) continue
      const ready = node.status?.conditions?.find(({ type }) => type === 'Ready')
      const lostMs = Date.parse(ready?.lastTransitionTime ?? '')
      // Timestamps of a clock that is ahead are in the future.
      const agoMs = Math.max(0, now - lostMs)
      if (Number.isNaN(lostMs) || agoMs > windowMs || lostMs <= notedUntilMs) continue
      this.#lost.set(node.metadata.name, this.#clock.monotonic() - agoMs)
    }
  }

  #wasReady(node: Node, nowMs: number): boolean {
    const claim = this.#state.claimOf(node)
    if (claim !== undefined) return isConditionTrue(claim, 'Initialized')
    return nowMs - Date.parse(node.metadata.creationTimestamp ?? '') > windowMs
  }

  #isGoing(node: Node): boolean {
    return (
      node.metadata.deletionTimestamp !== undefined ||
      node.spec?.unschedulable === true ||
      isDisrupted(node) ||
      this.#state.claimOf(node)?.metadata.deletionTimestamp !== undefined
    )
  }
}
