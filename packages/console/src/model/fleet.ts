/** Nodes and NodeClaims, and which of them belong together. */
import type { Node, NodeClaim } from '@tenon/api'

/** Names that share a provider ID. */
class ByProviderId {
  readonly #names = new Map<string, Set<string>>()

  add(providerId: string, name: string): void {
    if (providerId === '') return
    const names = this.#names.get(providerId)
    if (names === undefined) this.#names.set(providerId, new Set([name]))
    else names.add(name)
  }

  delete(providerId: string, name: string): void {
    const names = this.#names.get(providerId)
    names?.delete(name)
    if (names?.size === 0) this.#names.delete(providerId)
  }

  all(providerId: string): Iterable<string> {
    return this.#names.get(providerId) ?? []
  }

  /** The first by name, so that the order of events does not matter. */
  first(providerId: string): string | undefined {
    return [...this.all(providerId)].toSorted()[0]
  }
}

/** Stores the objects, and tracks which rows a change affects. */
export class Fleet {
  readonly #nodes = new Map<string, Node>()
  readonly #claims = new Map<string, NodeClaim>()
  readonly #nodesBy = new ByProviderId()
  readonly #claimsBy = new ByProviderId()
  /** Names whose rows have to be rebuilt. */
  readonly #dirtyNodes = new Set<string>()
  readonly #dirtyClaims = new Set<string>()

  node(name: string): Node | undefined {
    return this.#nodes.get(name)
  }

  claim(name: string): NodeClaim | undefined {
    return this.#claims.get(name)
  }

  nodeNames(): Iterable<string> {
    return this.#nodes.keys()
  }

  claimNames(): Iterable<string> {
    return this.#claims.keys()
  }

  claims(): Iterable<NodeClaim> {
    return this.#claims.values()
  }

  nodeOf(claim: NodeClaim): Node | undefined {
    const name = this.#nodesBy.first(claimProviderId(claim))
    const isFirst = this.#claimsBy.first(claimProviderId(claim)) === claim.metadata.name
    return name === undefined || !isFirst ? undefined : this.#nodes.get(name)
  }

  claimOf(node: Node): NodeClaim | undefined {
    const providerId = nodeProviderId(node)
    if (this.#nodesBy.first(providerId) !== node.metadata.name) return undefined
    const name = this.#claimsBy.first(providerId)
    return name === undefined ? undefined : this.#claims.get(name)
  }

  setNode(name: string, node: Node | undefined): void {
    const held = this.#nodes.get(name)
    if (held !== undefined) {
      this.#touch(nodeProviderId(held))
      this.#nodesBy.delete(nodeProviderId(held), name)
    }
    if (node === undefined) this.#nodes.delete(name)
    else {
      this.#nodes.set(name, node)
      this.#nodesBy.add(nodeProviderId(node), name)
      this.#touch(nodeProviderId(node))
    }
    this.#dirtyNodes.add(name)
  }

  setClaim(name: string, claim: NodeClaim | undefined): void {
    const held = this.#claims.get(name)
    if (held !== undefined) {
      this.#touch(claimProviderId(held))
      this.#claimsBy.delete(claimProviderId(held), name)
    }
    if (claim === undefined) this.#claims.delete(name)
    else {
      this.#claims.set(name, claim)
      this.#claimsBy.add(claimProviderId(claim), name)
      this.#touch(claimProviderId(claim))
    }
    this.#dirtyClaims.add(name)
  }

  /** Marks a node whose load, usage or price has changed. */
  touchNode(name: string): void {
    this.#dirtyNodes.add(name)
  }

  touchClaim(name: string): void {
    this.#dirtyClaims.add(name)
  }

  touchAll(): void {
    for (const name of this.#nodes.keys()) this.#dirtyNodes.add(name)
    for (const name of this.#claims.keys()) this.#dirtyClaims.add(name)
  }

  /** Whether rows have to be rebuilt. */
  get isTouched(): boolean {
    return this.#dirtyNodes.size + this.#dirtyClaims.size > 0
  }

  /**
   * Takes the names of rows to rebuild.
   * @param most of nodes and of claims; the rest follows in the next calls.
   */
  taken(most: number): { readonly nodes: readonly string[]; readonly claims: readonly string[] } {
    const nodes = takenFrom(this.#dirtyNodes, most)
    return { nodes, claims: takenFrom(this.#dirtyClaims, most - nodes.length) }
  }

  #touch(providerId: string): void {
    for (const name of this.#nodesBy.all(providerId)) this.#dirtyNodes.add(name)
    for (const name of this.#claimsBy.all(providerId)) this.#dirtyClaims.add(name)
  }
}

function takenFrom(names: Set<string>, most: number): readonly string[] {
  const taken: string[] = []
  for (const name of names) {
    if (taken.length >= most) break
    taken.push(name)
    names.delete(name)
  }
  return taken
}

function nodeProviderId({ spec }: Node): string {
  return spec?.providerID ?? ''
}

function claimProviderId({ status }: NodeClaim): string {
  return status?.providerID ?? ''
}
