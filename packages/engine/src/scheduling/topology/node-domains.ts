/** The domain in which a topology group counts a node: one that exists, or one that is assumed to be launched. */
import { labels, ownValue, type Taint } from '@tenon/api'
import type { TopologyNode } from '../../input/input.ts'
import { labelRequirements, type Requirements } from '../../requirements/requirements.ts'
import type { RequirementStates, StateId } from '../../requirements/states.ts'
import { memoized } from '../memoized.ts'
import { DomainNames } from './group.ts'
import type { TopologyGroup } from './group.ts'

/** A node, or a claim that becomes one, as topology rules see it. */
export interface NodeView {
  /** Its requirements; those of a claim may narrow further. */
  readonly state: StateId
  /** Number of its host name. */
  readonly host: number
  readonly taints: readonly Taint[]
  /** Whether it is a node, which gains no further label. */
  readonly isNode: boolean
}

/** A node that is on its way, or that a plan launches. */
export type Launch = Pick<NodeView, 'state' | 'taints'>

/** Ids of domains, by group. */
export type DomainsOfGroup = (group: TopologyGroup) => ReadonlySet<number>

export class NodeDomains {
  /** The domains of the nodes that are assumed to be launched. */
  readonly launched: DomainsOfGroup
  readonly #states: RequirementStates
  readonly #names = new Map<string, DomainNames>()
  readonly #labels = new Map<TopologyNode, Requirements>()

  constructor(states: RequirementStates, launches: readonly Launch[]) {
    this.#states = states
    this.launched = this.ofLaunches(launches)
  }

  /** The names of all domains of a label key. */
  namesOf(key: string): DomainNames {
    let names = this.#names.get(key)
    if (names === undefined) {
      names = new DomainNames()
      this.#names.set(key, names)
    }
    return names
  }

  /** The domain of a node, if pods may be placed on the node and the group counts them there. */
  of(group: TopologyGroup, node: TopologyNode): number | undefined {
    const domain = node.isCandidate ? ownValue(node.labels, group.rule.key) : undefined
    return domain === undefined || !this.isCounted(group, node) ? undefined : group.domains.idOf(domain)
  }

  /** Whether the group counts the pods of a node. */
  isCounted(group: TopologyGroup, node: TopologyNode): boolean {
    return group.rule.kind !== 'spread' || group.admits(this.#labelsOf(node), node.taints)
  }

  /** The domains of these nodes, as far as it is certain which they will be. */
  ofLaunches(launches: readonly Launch[]): DomainsOfGroup {
    return memoized((group) => {
      const domains = new Set<number>()
      for (const { state, taints } of launches) {
        const node = this.#states.get(state)
        const set = node.get(group.rule.key)
        const [value, ...others] = set === undefined || set.complement ? [] : set.values
        if (value === undefined || others.length > 0 || !group.admits(node, taints)) continue
        domains.add(group.domains.idOf(value))
      }
      return domains
    })
  }

  #labelsOf(node: TopologyNode): Requirements {
    let requirements = this.#labels.get(node)
    if (requirements === undefined) {
      requirements = labelRequirements({ [labels.hostname]: node.hostname, ...node.labels })
      this.#labels.set(node, requirements)
    }
    return requirements
  }
}
