/** Pods that DaemonSets bring to nodes which have none of them yet (reports.md 2). */
import type { SelectablePod } from '../problem/problem.ts'
import type { TopologyGroup } from './group.ts'

/** DaemonSets by their indexes. */
export interface TemplateDaemons {
  /** Those that run on every instance type of the template. */
  readonly always: readonly number[]
  /** Those that run on any of them. */
  readonly ever: readonly number[]
}

const nobody: TemplateDaemons = { always: [], ever: [] }

/** Rules about other pods are met, or broken, by the pods of DaemonSets that a new node is going to run. */
export class ExpectedPods {
  readonly #daemons: readonly SelectablePod[]
  readonly #templates: readonly TemplateDaemons[]
  readonly #onHost = new Map<number, TemplateDaemons>()
  /** The DaemonSets that a group selects; groups that select none are absent. */
  readonly #selected = new Map<TopologyGroup, ReadonlySet<number>>()

  /**
   * @param daemons what selectors see of the pods of each DaemonSet.
   * @param templates what runs on the nodes of each template.
   */
  constructor(daemons: readonly SelectablePod[], templates: readonly TemplateDaemons[]) {
    this.#daemons = daemons
    this.#templates = templates
  }

  /** Looks for DaemonSets that the group selects; spreads are not about them. */
  follow(group: TopologyGroup): void {
    if (group.rule.kind === 'spread') return
    const selected = this.#daemons.flatMap((daemon, index) => (group.selects(daemon) ? [index] : []))
    if (selected.length > 0) this.#selected.set(group, new Set(selected))
  }

  onClaim(host: number, template: number): void {
    if (this.#selected.size > 0) this.#onHost.set(host, this.#templates[template] ?? nobody)
  }

  onNode(host: number, daemons: readonly number[]): void {
    if (daemons.length > 0) this.#onHost.set(host, { always: daemons, ever: daemons })
  }

  /** Whether any host may bring along what an affinity looks for. */
  mayMeet(group: TopologyGroup): boolean {
    return this.#selected.has(group)
  }

  /** Whether the host is going to run a pod that the group selects. */
  on(host: number, group: TopologyGroup): boolean {
    const selected = this.#selected.get(group)
    return selected !== undefined && isAmong(this.#onHost.get(host) ?? nobody, group, selected)
  }

  /** Whether each node of a template is going to run a pod that the group selects. */
  ofTemplate(template: number, group: TopologyGroup): boolean {
    const selected = this.#selected.get(group)
    return selected !== undefined && isAmong(this.#templates[template] ?? nobody, group, selected)
  }
}

/** An affinity needs to be sure of such a pod; an anti-affinity keeps away where there may be one. */
function isAmong(
  { always, ever }: TemplateDaemons,
  { rule }: TopologyGroup,
  selected: ReadonlySet<number>,
): boolean {
  return (rule.kind === 'affinity' ? always : ever).some((daemon) => selected.has(daemon))
}
