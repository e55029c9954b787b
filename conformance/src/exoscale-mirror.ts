/**
 * Exoscale for a real control plane: the instances of a simulated zone join an embedded cluster, and its nodes
 * are mirrored as kwok nodes on the real one.
 */
import { kinds, type Node } from '@tenon/api'
import { createCredentials, startDevCluster } from '@tenon/devcluster'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { createExoscale, type Exoscale } from '@tenon/simulator-exoscale'
import { SeededRandom, Secret, serveHttp, silentLogger, SystemClock } from '@tenon/runtime'

const zone = 'ch-gva-2'
const key = 'EXOconformance00000000000001'
const secret = 'secret-of-the-conformance-suite'
const pollMs = 200

export interface MirrorOptions {
  /** Client of the real control plane. */
  readonly admin: KubeClient
  readonly seed: Parameters<Exoscale['add']>[0]
  /** Operations that the API key may call. */
  readonly operations: readonly string[]
  /** How long each node keeps the taint that a cloud controller manager removes; absent: nodes do not have it. */
  readonly initializationMs?: number
}

const uninitialized = 'node.cloudprovider.kubernetes.io/uninitialized'

export class ExoscaleMirror {
  readonly cloud: Exoscale
  /** Environment variables for a process that scales the zone. */
  readonly environment: Readonly<Record<string, string>>
  readonly #admin: KubeClient
  readonly #embedded: () => readonly Node[]
  readonly #end: () => Promise<void>
  readonly #stopping = new AbortController()
  readonly #mirroring: Promise<void>
  readonly #clock = new SystemClock()
  readonly #initializationMs: number
  /** When each node that still has the taint was created, in monotonic milliseconds. */
  readonly #closed = new Map<string, number>()

  private constructor(
    options: MirrorOptions,
    parts: Pick<ExoscaleMirror, 'cloud' | 'environment'>,
    embedded: () => readonly Node[],
    end: () => Promise<void>,
  ) {
    this.#admin = options.admin
    this.cloud = parts.cloud
    this.environment = parts.environment
    this.#embedded = embedded
    this.#end = end
    this.#initializationMs = options.initializationMs ?? 0
    this.#mirroring = this.#mirror()
  }

  static async start(options: MirrorOptions): Promise<ExoscaleMirror> {
    const clock = new SystemClock()
    const cluster = startDevCluster({
      clock,
      random: new SeededRandom('mirror'),
      logger: silentLogger,
      credentials: await createCredentials(clock.now()),
      simulator: {
        prepare: () => undefined,
        start: (parts) =>
          createExoscale({
            clock,
            random: parts.runtime.random.fork('exoscale'),
            logger: silentLogger,
            joiner: parts.nodes.joiner,
            api: parts.api.as('exoscale-cloud-controller-manager'),
            zone,
            clusterVersion: parts.api.version,
            credentials: [{ key, secret: new Secret(secret), operations: options.operations }],
            settings: {
              operationDelay: { minMs: 300, maxMs: 600 },
              bootDelay: { minMs: 1000, maxMs: 2000 },
            },
          }),
      },
    })
    cluster.announce('127.0.0.1', 6443)
    cluster.cloud.add(options.seed)
    const server = await serveHttp(cluster.cloud.handle, { host: '127.0.0.1', port: 0 })
    const url = `http://127.0.0.1:${server.port}/v2`
    cluster.cloud.setBaseUrl(url)
    const environment = {
      EXOSCALE_ZONE: zone,
      EXOSCALE_API_KEY: key,
      EXOSCALE_API_SECRET: secret,
      EXOSCALE_API_ENDPOINT: url,
    }
    const api = cluster.server.localAs('kubectl')
    const end = async () => {
      await server.close()
      cluster.stop()
    }
    return new ExoscaleMirror(options, { cloud: cluster.cloud, environment }, () => api.list(kinds.node), end)
  }

  /** Names of the running members of pools. */
  members(): readonly string[] {
    return this.cloud
      .instances()
      .filter(({ state, instancePoolId }) => state === 'running' && instancePoolId !== undefined)
      .map(({ name }) => name)
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#mirroring
    for (const node of await this.#admin.list(kinds.node)) await this.#delete(node)
    await this.#end()
  }

  async #mirror(): Promise<void> {
    const { signal } = this.#stopping
    while (!signal.aborted) {
      const [real, running] = [await this.#admin.list(kinds.node), new Set(this.members())]
      const known = new Set(real.map(({ metadata }) => metadata.name))
      for (const node of this.#embedded())
        if (running.has(node.metadata.name) && !known.has(node.metadata.name)) await this.#create(node)
      // Deletes nodes without an instance, as a cloud controller manager does.
      for (const node of real) if (!running.has(node.metadata.name)) await this.#delete(node)
      for (const node of real) await this.#initialize(node)
      await this.#clock.sleep(pollMs, signal).catch(() => undefined)
    }
  }

  async #create({ metadata, spec, status }: Node): Promise<void> {
    const { name, labels = {} } = metadata
    await this.#admin.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels, annotations: { 'kwok.x-k8s.io/node': 'fake' } },
      spec: {
        providerID: spec?.providerID ?? '',
        ...(this.#initializationMs > 0 && {
          taints: [{ key: uninitialized, value: 'true', effect: 'NoSchedule' }],
        }),
      },
    })
    if (this.#initializationMs > 0) this.#closed.set(name, this.#clock.monotonic())
    const { capacity, allocatable } = status ?? {}
    await this.#admin.patch(
      kinds.node,
      { name },
      { status: { capacity, allocatable } },
      { subresource: 'status' },
    )
  }

  async #initialize({ metadata: { name }, spec }: Node): Promise<void> {
    const createdMs = this.#closed.get(name)
    if (createdMs === undefined || this.#clock.monotonic() - createdMs < this.#initializationMs) return
    const taints = (spec?.taints ?? []).filter(({ key: taint }) => taint !== uninitialized)
    await this.#admin.patch(kinds.node, { name }, { spec: { taints } })
    this.#closed.delete(name)
  }

  async #delete({ metadata: { name } }: Node): Promise<void> {
    try {
      await this.#admin.delete(kinds.node, { name })
    } catch (error) {
      if (!isKubeError(error, 'notFound')) throw error
    }
  }
}
