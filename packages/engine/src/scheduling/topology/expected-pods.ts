/** Daemon pods that new or starting nodes will run (reports.md 2). */
import type { SelectablePod } from '../problem/problem.ts'
import type { TopologyGroup } from './group.ts'

/** DaemonSets by their indexes. */
export interface TemplateDaemons {
  /** DaemonSets that run on every instance type of the template. */
  readonly always: readonly number[]
  /** DaemonSets that run on some instance type of the template. */
  readonly ever: readonly number[]
}

const nobody: TemplateDaemons = { always: [], ever: [] }

/** Affinity may be met, and anti-affinity broken, by daemon pods that a new node will run. */
export class ExpectedPods {
  readonly #daemons: readonly SelectablePod[]
  readonly #templates: readonly TemplateDaemons[]
  readonly #onHost = new Map<number, TemplateDaemons>()
  /** The DaemonSets that a group selects; groups that select none are absent. */
  readonly #selected = new Map<TopologyGroup, ReadonlySet<number>>()

  /**
   * @param daemons the pod of each DaemonSet as selectors see it.
   * @param templates the DaemonSets of each template.
   */
  constructor(daemons: readonly SelectablePod[], templates: readonly TemplateDaemons[]) {
    this.#daemons = daemons
    this.#templates = templates
  }

  /** Finds the DaemonSets that the group selects; spread constraints do not expect pods. */
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

  /** Whether the group selects some DaemonSet, so that any new host may meet an affinity. */
  mayMeet(group: TopologyGroup): boolean {
    return this.#selected.has(group)
  }

  /** Whether the host will run a daemon pod that the group selects. */
  on(host: number, group: TopologyGroup): boolean {
    const selected = this.#selected.get(group)
    return selected !== undefined && isAmong(this.#onHost.get(host) ?? nobody, group, selected)
  }

  /** Whether nodes of a template will run a daemon pod that the group selects. */
  ofTemplate(template: number, group: TopologyGroup): boolean {
    const selected = this.#selected.get(group)
    return selected !== undefined && isAmong(this.#templates[template] ?? nobody, group, selected)
  }
}

/** Affinity needs a pod that certainly runs; anti-affinity avoids nodes where one may run. */
function isAmong(
  { always, ever }: TemplateDaemons,
  { rule }: TopologyGroup,
  selected: ReadonlySet<number>,
): boolean {
  return (rule.kind === 'affinity' ? always : ever).some((daemon) => selected.has(daemon))
}
