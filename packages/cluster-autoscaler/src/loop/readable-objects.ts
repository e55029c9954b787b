/** Filters out invalid objects, so that one of them does not stop the loop. */
import { type KubeObject, type Node, parseResources, type Pod } from '@tenon/api'
import type { PodReader } from '@tenon/filters'
import type { Logger } from '@tenon/runtime'

export class ReadableObjects {
  readonly #reader: PodReader
  readonly #logger: Logger
  readonly #judged = new WeakMap<KubeObject, boolean>()

  constructor(reader: PodReader, logger: Logger) {
    this.#reader = reader
    this.#logger = logger
  }

  readonly isReadablePod = (pod: Pod): boolean => this.#isReadable(pod, () => this.#reader.factsOf(pod))

  nodes(nodes: readonly Node[]): readonly Node[] {
    return nodes.filter((node) =>
      this.#isReadable(node, () => [
        parseResources(node.status?.capacity),
        parseResources(node.status?.allocatable),
      ]),
    )
  }

  #isReadable(object: KubeObject, read: () => unknown): boolean {
    const known = this.#judged.get(object)
    if (known !== undefined) return known
    let isReadable = true
    try {
      read()
    } catch (error) {
      isReadable = false
      const { namespace, name } = object.metadata
      const id = namespace === undefined ? name : `${namespace}/${name}`
      this.#logger.warn('an object cannot be read and does not count', {
        kind: object.kind,
        object: id,
        error,
      })
    }
    this.#judged.set(object, isReadable)
    return isReadable
  }
}
