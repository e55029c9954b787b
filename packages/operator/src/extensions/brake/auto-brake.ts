/** `brake.automatic`: pauses voluntary disruption when something goes wrong (ask.md 8). */
import { type ConfigMap, karpenterKinds, kinds, type NodePool, ownValue } from '@tenon/api'
import { done, type EventRecorder, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { type Clock, Listeners, rfc3339 } from '@tenon/runtime'
import type { Caches } from '../../state/caches.ts'
import type { ControllerSpec, Enqueue } from '../../controller.ts'
import type { ClusterState } from '../../state/cluster-state.ts'
import type { ReplacementObserver } from '../../disruption/commands/replacements.ts'
import type { Settings } from '../../settings.ts'
import { brakeKeys, brakeName, pauseAnnotations } from '../../state/pause.ts'
import { type Loss, LostNodes } from './lost-nodes.ts'
import { type PauseValue, pauseText, readPause } from '../../state/pause-value.ts'

interface Dependencies {
  readonly client: Pick<KubeClient, 'create' | 'patch'>
  readonly caches: Pick<Caches, 'brakeConfigMaps' | 'nodePools' | 'nodes'>
  readonly state: Pick<ClusterState, 'brake' | 'claimOf'>
  readonly events: EventRecorder
  readonly clock: Clock
  readonly settings: Pick<Settings, 'brakeNamespace'>
}

const pauseMs = 30 * 60_000
/** Replacements of one NodePool that fail in a row. */
const mostFailures = 3
/** Nodes that a reason names. */
const namedNodes = 5

export class AutoBrake implements ControllerSpec, ReplacementObserver {
  readonly name = 'brake.automatic'
  readonly concurrency = { least: 1, most: 1 }
  readonly #deps: Dependencies
  /** Replacements that failed since one succeeded, by NodePool. */
  readonly #failures = new Map<string, number>()
  /** Pauses that are not written yet, by NodePool; under the empty name that of the cluster. */
  readonly #unwritten = new Map<string, PauseValue>()
  readonly #due = new Listeners<string>()

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  watch(enqueue: Enqueue): void {
    const { caches, clock, state } = this.#deps
    this.#due.add(enqueue)
    const claimOf = state.claimOf.bind(state)
    const onLoss = (loss: Loss) => {
      this.#pause('', lossText(loss))
    }
    new LostNodes({ nodes: caches.nodes, claimOf, clock }).follow(onLoss, this.#lastMs())
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
    this.#tell(pool, reason, now + pauseMs)
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

  #tell(pool: string, reason: string, untilMs: number): void {
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

  /** When the last pause of the cluster began or was ended by somebody; what was lost by then is told already. */
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
