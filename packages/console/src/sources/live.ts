/** A running cluster, followed with the user's own rights (console.md 1). */
import { karpenterKinds, type KubeObject, kinds, pathOf, type ResourceType } from '@tenon/api'
import { createCache, createKubeClient, type ListOptions, TurnPace } from '@tenon/kube'
import { type Clock, messageOf, readText, silentLogger, SystemRandom, type Transport } from '@tenon/runtime'
import type { SourceEvent } from '../model/event.ts'
import { amountsOf } from '../model/facts.ts'
import type { Amounts, ConsoleResource } from '../model/view.ts'
import { observedTransport } from './observed-transport.ts'
import { PodTrimmer, trimmedClaim, trimmedNode, trimmedPool } from './trim.ts'

export interface LiveOptions {
  readonly transport: Transport
  readonly clock: Clock
  /** Of the nodes that are looked at; all without it. */
  readonly nodeSelector?: ListOptions['labelSelector']
  /** Told from now on, until the signal aborts. */
  readonly tell: (event: SourceEvent) => void
}

/** Changes come so much later at most, and many at once. */
const gatherMs = 50
const heartbeatMs = 2000
const answerMs = 5000
const usageMs = 15_000
const metricsPath = '/apis/metrics.k8s.io/v1beta1/nodes'

/** Follows a cluster until `signal` aborts; what cannot be read is told as absent. */
export function followCluster(options: LiveOptions, signal: AbortSignal): void {
  const following = new Following(options, signal)
  following.start()
}

class Following {
  readonly #options: LiveOptions
  readonly #signal: AbortSignal
  readonly #transport: Transport
  /** Resources by the path of their collection. */
  readonly #paths = new Map<string, ConsoleResource>()
  readonly #open = new Set<string>()
  readonly #refused = new Set<string>()
  /** Collections that arrive at the same time take turns. */
  readonly #pace: TurnPace
  #heardMs: number
  #isStale = false

  constructor(options: LiveOptions, signal: AbortSignal) {
    this.#options = options
    this.#signal = signal
    this.#pace = new TurnPace(options.clock)
    this.#heardMs = options.clock.now()
    this.#transport = observedTransport(options.transport, {
      watching: (path, isOpen) => {
        if (isOpen) this.#open.add(path)
        else this.#open.delete(path)
      },
      answered: (path, status) => {
        this.#noteAnswer(path, status)
      },
    })
  }

  start(): void {
    const { nodeSelector } = this.#options
    this.#follow('nodes', kinds.node, trimmedNode, nodeSelector && { labelSelector: nodeSelector })
    this.#follow('nodeclaims', karpenterKinds.nodeClaim, trimmedClaim)
    this.#follow('nodepools', karpenterKinds.nodePool, trimmedPool)
    const trimmer = new PodTrimmer()
    this.#follow('pods', kinds.pod, (pod) => trimmer.trim(pod))
    void this.#listen()
    void this.#measure()
  }

  #follow<T extends KubeObject>(
    resource: ConsoleResource,
    type: ResourceType<T>,
    transform: (object: T, held?: T) => T,
    selection: ListOptions = {},
  ): void {
    const { clock, tell } = this.#options
    const client = createKubeClient({ transport: this.#transport, clock })
    this.#paths.set(pathOf(type), resource)
    const cache = createCache(client, type, {
      clock,
      logger: silentLogger,
      random: new SystemRandom(),
      transform,
      gatherMs,
      pace: this.#pace,
      ...selection,
    })
    cache.onChange((change) => {
      if (change.kind === 'deleted') {
        const { name, namespace } = change.object.metadata
        tell({ kind: 'removed', resource, name, ...(namespace !== undefined && { namespace }) })
      } else tell({ kind: 'set', resource, object: change.object })
    })
    cache.synced(this.#signal).then(
      () => tell({ kind: 'read', resource }),
      () => undefined,
    )
    cache.start(this.#signal)
  }

  #noteAnswer(path: string, status: number): void {
    const resource = this.#paths.get(path)
    if (resource === undefined) return
    if (status !== 403 && status !== 404) {
      this.#refused.delete(path)
      return
    }
    this.#refused.add(path)
    const why =
      status === 404
        ? `the server does not serve ${resource}`
        : `the right is missing: list and watch ${resource}`
    this.#options.tell({ kind: 'absent', what: resource, why })
  }

  /** Asks again and again whether the API server is there. */
  async #listen(): Promise<void> {
    const { clock, tell } = this.#options
    while (!this.#signal.aborted) {
      const isHeard = await this.#isHeard()
      if (this.#signal.aborted) return
      const awaited = [...this.#paths.keys()].filter((path) => !this.#refused.has(path))
      const isFollowed = awaited.every((path) => this.#open.has(path))
      if (isHeard && (isFollowed || !this.#isStale)) {
        this.#heardMs = clock.now()
        if (this.#isStale) tell({ kind: 'fresh' })
        this.#isStale = false
      } else if (!isHeard) {
        if (!this.#isStale) tell({ kind: 'stale', sinceMs: this.#heardMs })
        this.#isStale = true
      }
      await clock.sleep(heartbeatMs, this.#signal).catch(() => undefined)
    }
  }

  async #isHeard(): Promise<boolean> {
    try {
      await this.#get('/version')
      return true
    } catch {
      return false
    }
  }

  /** Measured usage, where it is served. */
  async #measure(): Promise<void> {
    const { clock, tell } = this.#options
    while (!this.#signal.aborted) {
      try {
        const { status, text } = await this.#get(metricsPath)
        if (status === 200) tell({ kind: 'usage', usage: usageOf(text) })
        else if (status === 403 || status === 404 || status === 503)
          tell({ kind: 'absent', what: 'usage', why: `the server answers ${status} to GET ${metricsPath}` })
      } catch (error) {
        tell({ kind: 'absent', what: 'usage', why: messageOf(error) })
      }
      await clock.sleep(usageMs, this.#signal).catch(() => undefined)
    }
  }

  async #get(path: string): Promise<{ readonly status: number; readonly text: string }> {
    const limit = AbortSignal.any([this.#signal, AbortSignal.timeout(answerMs)])
    const request = { method: 'GET', path, headers: { accept: 'application/json' } }
    const { status, body } = await this.#transport.send(request, limit)
    return { status, text: await readText(body) }
  }
}

function usageOf(text: string): ReadonlyMap<string, Amounts> {
  const { items = [] } = JSON.parse(text) as {
    readonly items?: readonly {
      readonly metadata?: { readonly name?: string }
      readonly usage?: Readonly<Record<string, string>>
    }[]
  }
  return new Map(items.map(({ metadata, usage }) => [metadata?.name ?? '', amountsOf(usage)]))
}
