/** Which values the nodes of the pools can have for each label (scheduling.md 9.2). */
import type { Taint, Toleration } from '@tenon/api'
import { intersection } from '../../requirements/requirement.ts'
import type { Requirements } from '../../requirements/requirements.ts'
import type { CompiledPool } from '../pool-template.ts'
import { untolerated } from '../taints.ts'

/** Domains by label key, each with the taints under which it can be had. */
export class DomainUniverse {
  readonly #domains = new Map<string, Map<string, (readonly Taint[])[]>>()

  /** @param pools every pool with instance types, used up or not. */
  constructor(pools: readonly CompiledPool[]) {
    for (const { requirements, taints, types } of pools) {
      for (const [key, set] of requirements) {
        if (!set.complement) for (const value of set.values) this.#add(key, value, taints)
      }
      for (const type of types) this.#addReachable(type.requirements, requirements, taints)
    }
  }

  /** Domains of a key; with tolerations, only those that can be had without an untolerated taint. */
  domains(key: string, tolerations: readonly Toleration[] | undefined): readonly string[] {
    const known = this.#domains.get(key)
    if (known === undefined) return []
    if (tolerations === undefined) return [...known.keys()]
    return [...known]
      .filter(([, taintSets]) => taintSets.some((taints) => untolerated(taints, tolerations).length === 0))
      .map(([domain]) => domain)
  }

  /** Adds what a type offers within the bounds of its pool. */
  #addReachable(offered: Requirements, bounds: Requirements, taints: readonly Taint[]): void {
    for (const [key, set] of offered) {
      const bound = bounds.get(key)
      const reachable = bound === undefined ? set : intersection(bound, set)
      if (!reachable.complement) for (const value of reachable.values) this.#add(key, value, taints)
    }
  }

  #add(key: string, domain: string, taints: readonly Taint[]): void {
    let domains = this.#domains.get(key)
    if (domains === undefined) {
      domains = new Map()
      this.#domains.set(key, domains)
    }
    const taintSets = domains.get(domain)
    if (taintSets === undefined) domains.set(domain, [taints])
    else if (!taintSets.includes(taints)) taintSets.push(taints)
  }
}
