/**
 * Writes of replicas and marks with whatever rights there are. Each has a
 * precondition on the resourceVersion that was read.
 */
import { type KubeObject, ownValue, type ResourceType } from '@tenon/api'
import { isKubeError, isNotServed, type WatchingKubeClient } from '@tenon/kube'
import { hubKeyOf } from '../hub/keys.ts'
import type { Machine } from '../objects.ts'
import type { Scalable } from './scalable.ts'

/** Value of our marks, before the time; Machines with another value were marked by someone else. */
export const ownMark = 'tenon '

interface Scale extends KubeObject {
  readonly spec: { readonly replicas: number }
}

/** Remembers which form of a write the hub allows, by kind. */
export class GroupWrites {
  readonly #client: WatchingKubeClient
  readonly #allowed = new Map<string, number>()

  constructor(client: WatchingKubeClient) {
    this.#client = client
  }

  /**
   * Sets the replicas of a resource as it was read, with all its fields.
   * @returns the new resourceVersion.
   */
  async setReplicas(
    type: ResourceType<Scalable>,
    object: Scalable,
    replicas: number,
    signal: AbortSignal,
  ): Promise<string> {
    const client = this.#client
    const key = hubKeyOf(object)
    const { resourceVersion = '' } = object.metadata
    const patch = { spec: { replicas } }
    const scale: Scale = {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { ...key, resourceVersion },
      ...patch,
    }
    const written = await this.#firstAllowed(`${type.plural}/scale`, [
      () => client.patch(type, key, patch, { subresource: 'scale', resourceVersion, signal }),
      () => client.update<KubeObject>(type, scale, { subresource: 'scale', signal }),
      () => client.patch(type, key, patch, { resourceVersion, signal }),
      () => client.update(type, { ...object, spec: { ...object.spec, replicas } }, { signal }),
    ])
    return written.metadata.resourceVersion ?? ''
  }

  /** @param value of the annotation; null removes it. */
  async mark(
    type: ResourceType<Machine>,
    machine: Machine,
    annotation: string,
    value: string | null,
    signal: AbortSignal,
  ): Promise<void> {
    const { resourceVersion = '' } = machine.metadata
    const annotations = { [annotation]: value }
    const { [annotation]: _, ...others } = machine.metadata.annotations ?? {}
    const marked = value === null ? others : { ...others, [annotation]: value }
    await this.#firstAllowed(type.plural, [
      () =>
        this.#client.patch(
          type,
          hubKeyOf(machine),
          { metadata: { annotations } },
          { resourceVersion, signal },
        ),
      () =>
        this.#client.update(
          type,
          { ...machine, metadata: { ...machine.metadata, annotations: marked } },
          { signal },
        ),
    ])
  }

  /** Tries the forms of a write from the one that was last allowed, until one is not refused. */
  async #firstAllowed(kind: string, forms: readonly (() => Promise<KubeObject>)[]): Promise<KubeObject> {
    const start = this.#allowed.get(kind) ?? 0
    const inTurn = forms.map((_, at) => (start + at) % forms.length)
    for (const [count, at] of inTurn.entries()) {
      try {
        const written = await (forms[at] as () => Promise<KubeObject>)()
        this.#allowed.set(kind, at)
        return written
      } catch (error) {
        const isRefused = isKubeError(error, 'forbidden') || isNotServed(error)
        if (!isRefused || count === forms.length - 1) throw error
      }
    }
    throw new Error('a write has no form')
  }
}

/** Who marked a Machine for deletion. */
export function markOf(machine: Machine, annotation: string): 'none' | 'own' | 'foreign' {
  const value = ownValue(machine.metadata.annotations, annotation)
  if (value === undefined) return 'none'
  return value.startsWith(ownMark) ? 'own' : 'foreign'
}
