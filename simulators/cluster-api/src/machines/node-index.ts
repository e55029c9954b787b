import type { Node } from '@tenon/api'

/** Nodes of the workload cluster by provider ID. */
export class NodeIndex {
  readonly #byId = new Map<string, Map<string, Node>>()

  put(node: Node): void {
    const id = node.spec?.providerID ?? ''
    const there = this.#byId.get(id) ?? new Map<string, Node>()
    there.set(node.metadata.name, node)
    this.#byId.set(id, there)
  }

  remove(node: Node): void {
    const id = node.spec?.providerID ?? ''
    const there = this.#byId.get(id)
    there?.delete(node.metadata.name)
    if (there?.size === 0) this.#byId.delete(id)
  }

  /** The Node with this ID; undefined if there is none, or several have it. */
  only(providerId: string): Node | undefined {
    const [first, ...others] = this.#byId.get(providerId)?.values() ?? []
    return others.length === 0 ? first : undefined
  }
}
