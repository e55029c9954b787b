import type { PodFacts } from '@tenon/filters'

/** Pending pods that are nominated for a node (`status.nominatedNodeName`). */
export class Nominations {
  readonly #byNode = new Map<string, Map<string, PodFacts>>()
  readonly #nodeOf = new Map<string, string>()

  nodeOf(uid: string): string | undefined {
    return this.#nodeOf.get(uid)
  }

  /** Sets or clears a pod's nomination. */
  set(facts: PodFacts, nodeName: string | undefined): void {
    if (this.#nodeOf.get(facts.uid) !== nodeName) this.remove(facts.uid)
    if (nodeName === undefined) return
    const pods = this.#byNode.get(nodeName) ?? new Map<string, PodFacts>()
    pods.set(facts.uid, facts)
    this.#byNode.set(nodeName, pods)
    this.#nodeOf.set(facts.uid, nodeName)
  }

  /** Returns whether there was a nomination. */
  remove(uid: string): boolean {
    const nodeName = this.#nodeOf.get(uid)
    if (nodeName === undefined) return false
    this.#nodeOf.delete(uid)
    const pods = this.#byNode.get(nodeName)
    pods?.delete(uid)
    if (pods?.size === 0) this.#byNode.delete(nodeName)
    return true
  }

  /** Other pods nominated for a node that count against `facts`: of equal or higher priority. */
  ahead(facts: PodFacts, nodeName: string): PodFacts[] {
    const pods = this.#byNode.get(nodeName)
    if (pods === undefined) return []
    return [...pods.values()].filter((one) => one.uid !== facts.uid && one.priority >= facts.priority)
  }

  /** Pods of lower priority that are nominated for a node. */
  behind(facts: PodFacts, nodeName: string): PodFacts[] {
    return [...(this.#byNode.get(nodeName)?.values() ?? [])].filter((one) => one.priority < facts.priority)
  }
}
