/** Tells of pauses that begin and end: events, the metric, the journal and the log. */
import type { KubeObject, NodePool } from '@tenon/api'
import type { EventRecorder } from '@tenon/kube'
import type { Logger } from '@tenon/runtime'
import type { Caches } from '../../state/caches.ts'
import type { Journal } from '../../journal/journal.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import { brakeName, type Pause, pauseSentence } from '../../state/pause.ts'
import { includable } from '../../state/pause-value.ts'

interface Dependencies {
  readonly caches: Pick<Caches, 'brakeConfigMaps'>
  readonly events: EventRecorder
  readonly journal: Pick<Journal, 'note'>
  readonly metrics: Pick<Metrics, 'paused' | 'pausesUnreadable'>
  readonly logger: Logger
}

const things = ['voluntary', ...includable] as const

export class PauseNews {
  readonly #deps: Dependencies
  /** What was told last, by NodePool; under the empty name of the cluster. */
  readonly #told = new Map<string, readonly string[]>()
  #isUnreadable = false

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** @param isUnreadable whether the ConfigMap cannot be read. */
  ofCluster(pauses: readonly Pause[], isUnreadable: boolean): void {
    const { caches, logger } = this.#deps
    const object = caches.brakeConfigMaps?.list()[0]
    this.#tell('', object, pauses)
    this.#measure('', pauses, isUnreadable)
    if (isUnreadable && !this.#isUnreadable)
      logger.warn(
        'the ConfigMap that pauses disruption cannot be read; only annotations of NodePools pause it',
        {
          ConfigMap: { name: brakeName },
          fix: 'grant list and watch of this ConfigMap in the namespace of the controller, as the chart does',
        },
      )
    this.#isUnreadable = isUnreadable
  }

  ofPool(pool: NodePool, pauses: readonly Pause[]): void {
    const { name } = pool.metadata
    const own = pauses.filter(({ nodePool }) => nodePool === name)
    this.#tell(name, pool, own)
    this.#measure(name, own, false)
  }

  /** The NodePool is gone. */
  forget(name: string): void {
    this.#told.delete(name)
    this.#measure(name, [], false)
  }

  #tell(name: string, object: KubeObject | undefined, pauses: readonly Pause[]): void {
    const { events, journal, logger } = this.#deps
    const before = this.#told.get(name) ?? []
    const now = pauses.map(pauseSentence)
    this.#told.set(name, now)
    const scope = name === '' ? {} : { nodePool: name }
    const say = (reason: 'Paused' | 'PauseUnreadable' | 'Resumed', message: string) => {
      journal.note({ kind: 'brake', reason, message, ...scope })
      logger.info(reason === 'Resumed' ? 'resumed' : 'paused', { ...scope, because: message })
      if (object === undefined) return
      const type = reason === 'PauseUnreadable' ? 'Warning' : 'Normal'
      const dedupe = [object.metadata.uid ?? object.metadata.name, message]
      events.record({ object, type, reason, message, dedupe })
    }
    for (const [index, sentence] of now.entries())
      if (!before.includes(sentence))
        say(pauses[index]?.problem === undefined ? 'Paused' : 'PauseUnreadable', sentence)
    for (const sentence of before)
      if (!now.includes(sentence)) say('Resumed', `This pause is over or was changed: ${sentence}`)
  }

  #measure(nodepool: string, pauses: readonly Pause[], isUnreadable: boolean): void {
    const { metrics } = this.#deps
    for (const by of ['person', 'automatic'] as const)
      for (const what of things) {
        const isPaused = pauses.some((pause) => pause.by === by && pause.holds.has(what))
        if (isPaused) metrics.paused.set({ nodepool, what, by }, 1)
        else metrics.paused.remove({ nodepool, what, by })
      }
    const isFaulty = isUnreadable || pauses.some(({ problem }) => problem !== undefined)
    if (isFaulty) metrics.pausesUnreadable.set({ nodepool }, 1)
    else metrics.pausesUnreadable.remove({ nodepool })
  }
}
