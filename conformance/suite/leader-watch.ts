import { kinds, type Lease, type Node } from '@tenon/api'
import { type Cache, createCacheRegistry, createKubeClient, loadKubeConfig } from '@tenon/kube'
import { silentLogger, SystemClock, SystemRandom } from '@tenon/runtime'

/** One term of a leader. */
export interface Term {
  readonly holder: string
  /** When the holder acquired the lease, according to the lease. */
  readonly sinceMs: number
  /** When the previous holder released the lease; undefined if it expired. */
  readonly freeSinceMs: number | undefined
}

/** Watches the lease and the Nodes, so that no change is missed. */
export class LeaderWatch {
  readonly leaseNamespace = 'kube-system'
  readonly leaseName = 'karpenter-leader-election'
  readonly terms: Term[] = []
  /** Names of all Nodes that ever existed, by claim. */
  readonly instances: ReadonlyMap<string, Set<string>>
  readonly #closing = new AbortController()
  readonly #clock = new SystemClock()
  readonly #leases: Cache<Lease>

  static async open(kubeconfig: string): Promise<LeaderWatch> {
    const clock = new SystemClock()
    const { transport } = loadKubeConfig({ kubeconfig, env: {} })
    const client = createKubeClient({ transport, clock })
    const parts = { client, clock, logger: silentLogger, random: new SystemRandom() }
    const registry = createCacheRegistry(parts)
    const [leases, nodes] = [registry.cache(kinds.lease), registry.cache(kinds.node)]
    const watch = new LeaderWatch(leases, nodes)
    registry.start(watch.#closing.signal)
    await registry.synced()
    return watch
  }

  private constructor(leases: Cache<Lease>, nodes: Cache<Node>) {
    this.#leases = leases
    let freeSinceMs: number | undefined
    leases.onChange(({ object: { metadata, spec } }) => {
      if (metadata.name !== this.leaseName) return
      const holder = spec?.holderIdentity ?? ''
      if (holder === '') freeSinceMs = Date.parse(spec?.renewTime ?? '')
      else if (holder !== this.terms.at(-1)?.holder) {
        this.terms.push({ holder, sinceMs: Date.parse(spec?.acquireTime ?? ''), freeSinceMs })
        freeSinceMs = undefined
      }
    })
    const instances = new Map<string, Set<string>>()
    nodes.onChange(({ object: { metadata } }) => {
      const claim = metadata.labels?.['kubernetes.io/hostname']
      if (claim === undefined || metadata.labels?.['karpenter.sh/nodepool'] !== 'leaders') return
      instances.set(claim, (instances.get(claim) ?? new Set()).add(metadata.name))
    })
    this.instances = instances
  }

  /** The current holder; empty if none. */
  get holder(): string {
    const key = { namespace: this.leaseNamespace, name: this.leaseName }
    return this.#leases.get(key)?.spec?.holderIdentity ?? ''
  }

  /** By the clock that leases are written with. */
  now(): number {
    return this.#clock.now()
  }

  async sleep(ms: number): Promise<void> {
    await this.#clock.sleep(ms)
  }

  close(): void {
    this.#closing.abort()
  }
}
