/** Clever Cloud behind a Kubernetes API in a map. */
import { isKubeError, type KubeClient } from '@tenon/kube'
import type { MemoryKube } from '@tenon/provider/contract-suite'
import type { Clock } from '@tenon/runtime'
import { type NodeGroup, nodeGroupKind } from '../nodegroup/types.ts'

/** What the platform writes into the status of a group. */
export type PlatformStatus = NonNullable<NodeGroup['status']>

const since = { lastTransitionTime: '2026-01-01T00:00:00Z' }
const condition = (type: string, reason = type, message = '') =>
  ({ type, status: 'True', reason, message, ...since }) as const

/** Statuses as the platform writes them. */
export const statuses = {
  accepted: { phase: 'Creating', conditions: [condition('ReconcileInProgress')] },
  ready: { phase: 'Synced', conditions: [condition('Ready')] },
  overQuota: { phase: 'QuotaExceeded' },
  overQuotaBecause: (message: string): PlatformStatus => ({
    conditions: [condition('ReconcileFailed', 'QuotaExceeded', message)],
  }),
  refused: (reason: string, message = ''): PlatformStatus => ({
    conditions: [condition('ReconcileFailed', reason, message)],
  }),
} satisfies Readonly<Record<string, PlatformStatus | ((...texts: string[]) => PlatformStatus)>>

/** Answers new groups after a second, and ends deleted ones after half a minute. */
export class FakePlatform {
  /** What a new group is answered; nothing when undefined. */
  answer: (group: NodeGroup) => PlatformStatus | undefined = () => statuses.accepted
  readonly #kube: MemoryKube
  readonly #clock: Clock

  constructor(kube: MemoryKube, clock: Clock) {
    this.#kube = kube
    this.#clock = clock
    const ending = new Set<string | undefined>()
    kube.cache(nodeGroupKind).onChange(({ kind, object }) => {
      const { uid, deletionTimestamp } = object.metadata
      if (kind === 'added') this.#clock.after(1000, () => this.#reply(object))
      if (kind !== 'updated' || deletionTimestamp === undefined || ending.has(uid)) return
      ending.add(uid)
      this.#clock.after(30_000, () => void this.#end(object))
    })
  }

  /** The API server as it adds the platform's finalizer to new groups. */
  client(client: KubeClient): KubeClient {
    return {
      get: (type, key, options) => client.get(type, key, options),
      list: (type, options) => client.list(type, options),
      create: (type, object, options) =>
        client.create(
          type,
          type.plural === nodeGroupKind.plural
            ? { ...object, metadata: { ...object.metadata, finalizers: ['api.clever-cloud.com/nodes'] } }
            : object,
          options,
        ),
      update: (type, object, options) => client.update(type, object, options),
      patch: client.patch.bind(client),
      delete: (type, key, options) => client.delete(type, key, options),
      evict: (pod, uid, options) => client.evict(pod, uid, options),
      serverVersion: () => client.serverVersion(),
    }
  }

  groups(): readonly NodeGroup[] {
    return this.#kube.all(nodeGroupKind)
  }

  group(name: string): NodeGroup | undefined {
    return this.groups().find(({ metadata }) => metadata.name === name)
  }

  /** Writes a status, as the platform does at any time. */
  write(name: string, status: PlatformStatus): void {
    const group = this.group(name)
    if (group !== undefined) this.#kube.put(nodeGroupKind, { ...group, status })
  }

  /** The group is gone at once, without a trace. */
  async remove(name: string): Promise<void> {
    await this.#kube.patch(nodeGroupKind, { name }, { metadata: { finalizers: [] } })
    await this.#kube.delete(nodeGroupKind, { name }).catch((error: unknown) => {
      if (!isKubeError(error, 'notFound')) throw error
    })
  }

  #reply({ metadata: { name, uid } }: NodeGroup): void {
    const group = this.group(name)
    const status = group?.metadata.uid === uid ? group && this.answer(group) : undefined
    if (status !== undefined) this.write(name, status)
  }

  async #end({ metadata: { name } }: NodeGroup): Promise<void> {
    await this.#kube.patch(nodeGroupKind, { name }, { metadata: { finalizers: [] } })
  }
}
