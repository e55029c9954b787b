/** Indexes of cached Machines, and notifications of changes. */
import { Listeners, type Clock } from '@tenon/runtime'
import { type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import type { Hub } from '../hub/hub.ts'
import type { Machine } from '../objects.ts'
import { bindingOf } from './binding.ts'

/** Shared by the whole process. Empty while the hub has not been read. */
export class FollowedMachines {
  readonly #hub: Hub
  readonly #byClaim = new Map<string, Map<string, HubKey>>()
  readonly #byProviderID = new Map<string, Map<string, HubKey>>()
  /** By key of the Machine: callbacks for its next change. */
  readonly #awaited = new Map<string, Set<() => void>>()
  readonly changes: Listeners<Machine> = new Listeners()

  constructor(hub: Hub) {
    this.#hub = hub
    hub.onOpen(({ caches }) => {
      caches.machines.onChange((change) => {
        if (change.kind === 'updated') this.#enter(change.old, false)
        this.#enter(change.object, change.kind !== 'deleted')
        for (const wake of this.#awaited.get(hubText(hubKeyOf(change.object))) ?? []) wake()
        this.changes.notify(change.object)
      })
    })
  }

  /** Machines that name the claim; usually one. */
  ofClaim(claimUid: string): readonly HubKey[] {
    return [...(this.#byClaim.get(claimUid)?.values() ?? [])]
  }

  /** Machines with a provider ID; usually one. */
  withProviderID(providerID: string): readonly HubKey[] {
    return [...(this.#byProviderID.get(providerID)?.values() ?? [])]
  }

  /**
   * Resolves when a Machine changes, at the latest after `ms`.
   * @throws the reason of `signal` once it aborts.
   */
  async changed(key: HubKey, clock: Clock, ms: number, signal?: AbortSignal): Promise<void> {
    const text = hubText(key)
    const waiting = this.#awaited.get(text) ?? new Set()
    this.#awaited.set(text, waiting)
    const news = Promise.withResolvers<void>()
    const end = new AbortController()
    waiting.add(news.resolve)
    try {
      const either = signal === undefined ? end.signal : AbortSignal.any([end.signal, signal])
      await Promise.race([clock.sleep(ms, either), news.promise])
    } finally {
      end.abort()
      waiting.delete(news.resolve)
      if (waiting.size === 0) this.#awaited.delete(text)
    }
  }

  #enter(machine: Machine, isThere: boolean): void {
    const key = hubKeyOf(machine)
    const binding = bindingOf(machine, this.#hub.names)
    if (binding.kind === 'bound') put(this.#byClaim, binding.claimUid, key, isThere)
    const providerID = machine.spec?.providerID ?? ''
    if (providerID !== '') put(this.#byProviderID, providerID, key, isThere)
  }
}

function put(index: Map<string, Map<string, HubKey>>, value: string, key: HubKey, isThere: boolean): void {
  const keys = index.get(value) ?? new Map<string, HubKey>()
  if (isThere) keys.set(hubText(key), key)
  else keys.delete(hubText(key))
  if (keys.size === 0) index.delete(value)
  else index.set(value, keys)
}
