/** Follows a running cluster with the user's rights (console.md 1). */
import { karpenterKinds, kinds, type KubeObject, pathOf, type ResourceType } from '@tenon/api'
import { createCache, createKubeClient, type ListOptions, TurnPace } from '@tenon/kube'
import {
  type Clock,
  type HttpRequest,
  type HttpResponse,
  messageOf,
  readText,
  silentLogger,
  SystemRandom,
  type Transport,
} from '@tenon/runtime'
import type { SourceEvent } from '../model/event.ts'
import { amountsOf } from '../model/facts.ts'
import type { Amounts, ConsoleResource } from '../model/view.ts'
import { PodTrimmer, trimmedClaim, trimmedNode, trimmedPool } from './trim.ts'

export interface LiveOptions {
  readonly transport: Transport
  readonly clock: Clock
  /** Selects nodes; default: all. */
  readonly nodeSelector?: ListOptions['labelSelector']
  /** Receives events until the signal aborts. */
  readonly emit: (event: SourceEvent) => void
}

/** Maximum delay of a change; changes within it are sent together. */
const gatherMs = 50
const heartbeatMs = 2000
const answerMs = 5000
const usageMs = 15_000
const metricsPath = '/apis/metrics.k8s.io/v1beta1/nodes'

/** Follows a cluster until `signal` aborts; what cannot be listed is reported as absent. */
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
  /** Lists that arrive at the same time take turns. */
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
    const { clock, emit } = this.#options
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
        emit({ kind: 'removed', resource, name, ...(namespace !== undefined && { namespace }) })
      } else emit({ kind: 'set', resource, object: change.object })
    })
    cache.synced(this.#signal).then(
      () => emit({ kind: 'read', resource }),
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
    this.#options.emit({ kind: 'absent', what: resource, why })
  }

  /** Polls whether the API server is reachable. */
  async #listen(): Promise<void> {
    const { clock, emit } = this.#options
    while (!this.#signal.aborted) {
      const isHeard = await this.#isHeard()
      if (this.#signal.aborted) return
      const awaited = [...this.#paths.keys()].filter((path) => !this.#refused.has(path))
      const isFollowed = awaited.every((path) => this.#open.has(path))
      if (isHeard && (isFollowed || !this.#isStale)) {
        this.#heardMs = clock.now()
        if (this.#isStale) emit({ kind: 'fresh' })
        this.#isStale = false
      } else if (!isHeard) {
        if (!this.#isStale) emit({ kind: 'stale', sinceMs: this.#heardMs })
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

  /** Polls measured usage, if it is served. */
  async #measure(): Promise<void> {
    const { clock, emit } = this.#options
    while (!this.#signal.aborted) {
      try {
        const { status, text } = await this.#get(metricsPath)
        if (status === 200) emit({ kind: 'usage', usage: usageOf(text) })
        else if (status === 403 || status === 404 || status === 503)
          emit({ kind: 'absent', what: 'usage', why: `the server answers ${status} to GET ${metricsPath}` })
      } catch (error) {
        emit({ kind: 'absent', what: 'usage', why: messageOf(error) })
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

interface RequestObserver {
  /** A watch of a path was opened or has ended. */
  readonly watching: (path: string, isOpen: boolean) => void
  /** Called with the status of each response. */
  readonly answered: (path: string, status: number) => void
}

function observedTransport(transport: Transport, observer: RequestObserver): Transport {
  return {
    send: async (request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> => {
      const [path = '', query = ''] = request.path.split('?')
      const response = await transport.send(request, signal)
      observer.answered(path, response.status)
      if (!/(^|&)watch=(true|1)/.test(query) || response.status !== 200) return response
      observer.watching(path, true)
      return { ...response, body: observed(response.body, () => observer.watching(path, false)) }
    },
  }
}

async function* observed(
  body: HttpResponse['body'],
  ended: () => void,
): AsyncGenerator<string | Uint8Array, void, undefined> {
  try {
    yield* body
  } finally {
    ended()
  }
}
