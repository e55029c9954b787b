import type { CloudContext } from '../zone/cloud-state.ts'
import type { Instance } from './instance.ts'
import { listedInstance } from './instance-view.ts'

/** How long a removed instance is remembered, for lists that lag. */
const rememberedMs = 10 * 60_000

/** The instances in lists: the zone as it was {@link ExoscaleSettings.listLagMs} ago. */
export class ListedInstances {
  readonly #context: CloudContext
  readonly #deletions = new Map<Instance, { readonly state: Instance['state']; readonly atMs: number }>()
  #gone: { readonly instance: Instance; readonly atMs: number }[] = []

  constructor(context: CloudContext) {
    this.#context = context
  }

  /** Call it when a deletion begins; `state` is the state before. */
  deletionAsked(instance: Instance, state: Instance['state']): void {
    this.#deletions.delete(instance)
    this.#deletions.set(instance, { state, atMs: this.#context.clock.now() })
  }

  deletionFailed(instance: Instance): void {
    this.#deletions.delete(instance)
  }

  removed(instance: Instance): void {
    const now = this.#context.clock.now()
    this.#gone = [...this.#gone.filter(({ atMs }) => now - atMs < rememberedMs), { instance, atMs: now }]
    for (const [oldest, { atMs }] of this.#deletions) {
      if (now - atMs <= 2 * rememberedMs) break
      this.#deletions.delete(oldest)
    }
  }

  /** The instances that pass `isAsked`, in creation order. */
  views(isAsked: (instance: Instance) => boolean): readonly Record<string, unknown>[] {
    const { state, settings, clock } = this.#context
    const instances = state.instances.values().filter(isAsked)
    if (settings.listLagMs <= 0) return instances.map(listedInstance)
    const seenAtMs = clock.now() - settings.listLagMs
    const still = this.#gone.filter(({ instance, atMs }) => atMs > seenAtMs && isAsked(instance))
    return [...still.map(({ instance }) => instance), ...instances]
      .filter(({ createdAtMs }) => createdAtMs <= seenAtMs)
      .toSorted((a, b) => a.createdAtMs - b.createdAtMs)
      .map((instance) => this.#asOf(instance, seenAtMs))
  }

  #asOf(instance: Instance, seenAtMs: number): Record<string, unknown> {
    const deletion = this.#deletions.get(instance)
    const view = listedInstance(instance)
    return deletion === undefined || deletion.atMs <= seenAtMs ? view : { ...view, state: deletion.state }
  }
}
